/* SPDX-License-Identifier: GPL-2.0-only */
/* Several ranges of an index at once: lists of keys, and joins by batched key access. They are taken from the server before
 * they are read, so that what they lead to is fetched at once, and read in their order, so that rows are locked one by one. */
#include "ha_pantile.h"

/* Ranges that are taken at once: few at first, since a statement may need only the first rows. */
static constexpr size_t TAKEN_FIRST= 16, TAKEN_AT_MOST= 64;

void Taken_range::copy(const KEY_MULTI_RANGE &from)
{
  range= from;
  keep(range.start_key, start);
  keep(range.end_key, end);
}

/* The server may make the next key in the same place. */
void Taken_range::keep(key_range &key, std::vector<uchar> &bytes)
{
  if (!key.keypart_map)
    return;
  bytes.assign(key.key, key.key + key.length);
  key.key= bytes.data();
}

/* What the server's own way over ranges calls for the next one. */
bool ha_pantile::next_range(range_seq_t handler, KEY_MULTI_RANGE *range)
{
  return static_cast<ha_pantile *>(handler)->take_range(range);
}

/* As a RANGE_SEQ_IF::next: returns true if there are no more. */
bool ha_pantile::take_range(KEY_MULTI_RANGE *range)
{
  if (ranges_read == ranges_taken)
  {
    taken_at_once= taken_at_once ? std::min(2 * taken_at_once, TAKEN_AT_MOST) : TAKEN_FIRST;
    taken_ranges.resize(TAKEN_AT_MOST);
    KEY_MULTI_RANGE next;
    for (ranges_read= ranges_taken= 0; ranges_taken < taken_at_once && !server_ranges.next(server_sequence, &next);)
      taken_ranges[ranges_taken++].copy(next);
    fetch_ahead();
  }
  if (ranges_read == ranges_taken)
    return true;
  *range= taken_ranges[ranges_read++].range;
  return false;
}

/* Fetches the rows of those that have been taken. Ranges of more than one key are fetched as they are read. What fails here
 * fails again when they are read. */
void ha_pantile::fetch_ahead()
{
  if (ranges_taken < 2 || !running())
    return;
  std::vector<pantile_value> keys;
  size_t parts= 0, count= 0;
  for (size_t n= 0; n < ranges_taken; n++)
  {
    const KEY_MULTI_RANGE &range= taken_ranges[n].range;
    if (!(range.range_flag & EQ_RANGE) || !range.start_key.keypart_map)
      continue;
    const bool may_be_there= shape.encode_key(table, active_index, range.start_key.key, range.start_key.length,
                                              taken_ranges[n].scratch, key_values);
    if (!may_be_there || (parts && key_values.size() != parts))
      continue;
    parts= key_values.size();
    keys.insert(keys.end(), key_values.begin(), key_values.end());
    count++;
  }
  if (count < 2)
    return;
  if (active_index == shape.primary)
    pantile_fetch_ahead(txn, share->table, keys.data(), parts, count);
  else
    pantile_fetch_ahead_index(txn, indexes[active_index], keys.data(), parts, count);
}

int ha_pantile::multi_range_read_init(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode,
                                      HANDLER_BUFFER *buffer)
{
  handler::multi_range_read_init(ranges, parameter, count, mode, buffer);
  joins= !(mode & HA_MRR_USE_DEFAULT_IMPL);
  server_ranges= mrr_funcs;
  server_sequence= mrr_iter;
  if (count < 2)
    return 0;
  ranges_read= ranges_taken= taken_at_once= 0;
  mrr_funcs.next= next_range;
  mrr_iter= this;
  return 0;
}

/* A join looks at a condition of both its tables as soon as a row is there. It takes errors for the end of the rows, so
 * they are reported here. */
int ha_pantile::multi_range_read_next(range_id_t *range)
{
  int failed;
  do
    failed= handler::multi_range_read_next(range);
  while (!failed && joins && server_ranges.skip_index_tuple && server_ranges.skip_index_tuple(server_sequence, *range));
  if (joins && failed && failed != HA_ERR_END_OF_FILE && failed != HA_ERR_KEY_NOT_FOUND)
    print_error(failed, MYF(0));
  return failed;
}

/* Batched key access, where the server's settings allow it and rows are not locked as they are found: those that a join
 * has no use for would stay locked. */
ha_rows ha_pantile::multi_range_read_info(uint index, uint count, uint keys, uint parts, uint *size, uint *flags,
                                          Cost_estimate *cost)
{
  const ha_rows rows= handler::multi_range_read_info(index, count, keys, parts, size, flags, cost);
  if (!locks_rows && ha_thd()->variables.optimizer_switch & OPTIMIZER_SWITCH_MRR)
    *flags&= ~HA_MRR_USE_DEFAULT_IMPL;
  return rows;
}

int ha_pantile::multi_range_read_explain_info(uint mode, char *to, size_t size)
{
  static constexpr char text[]= "Rows fetched ahead";
  if (mode & HA_MRR_USE_DEFAULT_IMPL || size < sizeof text)
    return 0;
  memcpy(to, text, sizeof text - 1);
  return sizeof text - 1;
}

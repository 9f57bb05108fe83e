/* SPDX-License-Identifier: GPL-2.0-only */
/* Several ranges of an index at once: the server collects places of rows and sorts them, or reads range after range. */
#include "ha_pantile.h"

/* Rows that are fetched at once. */
static constexpr size_t FETCHED_AT_ONCE= 64;

/* Takes down the keys of a list of primary keys, whose rows are then read one by one. */
void ha_pantile::note_keys(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode)
{
  if (count < 2 || active_index >= MAX_KEY || active_index != table_share->primary_key)
    return;
  const uint length= table->key_info[active_index].key_length;
  range_seq_t sequence= ranges->init(parameter, count, mode);
  KEY_MULTI_RANGE range;
  while (!ranges->next(sequence, &range))
  {
    /* A range of more than one key is fetched as it is read. */
    if (!(range.range_flag & UNIQUE_RANGE) || range.start_key.length != length)
      return listed_keys.clear();
    listed_keys.insert(listed_keys.end(), range.start_key.key, range.start_key.key + length);
  }
}

/* The next of these rows is read. Fetches it and those behind it, if it has not been fetched with others. What fails here
 * fails again when they are read. */
void ha_pantile::fetch_ahead()
{
  const size_t length= table->key_info[active_index].key_length;
  const size_t rows= listed_keys.size() / length, first= listed_read++;
  if (first % FETCHED_AT_ONCE || first + 1 >= rows)
    return;
  const size_t count= std::min(FETCHED_AT_ONCE, rows - first);
  std::vector<pantile_value> keys;
  ahead_scratch.resize(FETCHED_AT_ONCE);
  for (size_t n= 0; n < count; n++)
  {
    const uchar *key= listed_keys.data() + (first + n) * length;
    shape.encode_key(table, active_index, key, (uint) length, false, ahead_scratch[n], key_values);
    keys.insert(keys.end(), key_values.begin(), key_values.end());
  }
  pantile_fetch_ahead(txn, share->table, keys.data(), keys.size() / count, count);
}

int ha_pantile::multi_range_read_init(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode,
                                      HANDLER_BUFFER *buffer)
{
  listed_keys.clear();
  listed_read= 0;
  if (mode & HA_MRR_USE_DEFAULT_IMPL)
    note_keys(ranges, parameter, count, mode);
  return ranges_read.dsmrr_init(this, ranges, parameter, count, mode, buffer);
}

int ha_pantile::multi_range_read_next(range_id_t *range) { return ranges_read.dsmrr_next(range); }

ha_rows ha_pantile::multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *parameter, uint count,
                                                uint *size, uint *flags, Cost_estimate *cost)
{
  ranges_read.init(this, table);
  /* Rows are locked as the index is read. */
  if (locks_rows)
    *flags|= HA_MRR_USE_DEFAULT_IMPL;
  return ranges_read.dsmrr_info_const(index, ranges, parameter, count, size, flags, cost);
}

ha_rows ha_pantile::multi_range_read_info(uint index, uint count, uint keys, uint parts, uint *size, uint *flags,
                                          Cost_estimate *cost)
{
  ranges_read.init(this, table);
  if (locks_rows)
    *flags|= HA_MRR_USE_DEFAULT_IMPL;
  return ranges_read.dsmrr_info(index, count, keys, parts, size, flags, cost);
}

int ha_pantile::multi_range_read_explain_info(uint mode, char *to, size_t size)
{
  return ranges_read.dsmrr_explain_info(mode, to, size);
}

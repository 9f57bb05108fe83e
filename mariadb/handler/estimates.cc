/* SPDX-License-Identifier: GPL-2.0-only */
/* What the optimizer asks. */
#include "ha_pantile.h"
#include "reading.h"

/* Distinct keys that are looked at for an estimate of how many rows share one. */
static const uint SAMPLED_KEYS= 40;

uint64_t ha_pantile::estimate(uint key, const pantile_range &range)
{
  Reading reading(running());
  uint64_t about= 0;
  if (!reading.txn)
    return stats.records;
  const int code= key == MAX_KEY || key == shape.primary
                      ? pantile_estimate(reading.txn, share->table, &range, &about)
                      : pantile_estimate_index(reading.txn, indexes[key], &range, &about);
  return code == PANTILE_OK ? about : stats.records;
}

int ha_pantile::info(uint flag)
{
  if (flag & HA_STATUS_VARIABLE)
  {
    stats.records= estimate(MAX_KEY, pantile_range{});
    /* Without HA_STATS_RECORDS_IS_EXACT the optimizer still takes none for a promise in some plans, and the count is of
     * the newest rows, not of those that this transaction sees. */
    if (stats.records == 0 && !(flag & (HA_STATUS_TIME | HA_STATUS_OPEN)))
      stats.records= 1;
    stats.mean_rec_length= table->s->reclength;
    stats.data_file_length= stats.records * stats.mean_rec_length;
    stats.deleted= 0;
    stats.delete_length= 0;
  }
  /* The server asks for constants when it opens the table, and not again when the table has grown. */
  const bool has_changed= stats.records > 2 * sampled_rows + 100 || sampled_rows > 2 * stats.records + 100;
  if ((flag & HA_STATUS_CONST) || has_changed)
  {
    stats.block_size= 4096;
    sampled_rows= stats.records;
    sample_keys();
  }
  if (flag & HA_STATUS_AUTO)
    stats.auto_increment_value= share->next_number();
  if (flag & HA_STATUS_ERRKEY)
    errkey= failure().key;
  return 0;
}

/* Rows for each key prefix: the rows up to the 40th distinct one, divided by 40. */
void ha_pantile::sample_keys()
{
  /* Nothing of it counts as read by the statement. */
  Reading reading(nullptr);
  if (!reading.txn)
    return;
  for (uint k= 0; k < table->s->keys; k++)
  {
    KEY &key= table->key_info[k];
    for (uint parts= 1; parts <= key.ext_key_parts; parts++)
    {
      /* All sessions share it, and plan by it meanwhile. */
      ulong &result= key.rec_per_key[parts - 1];
      const bool is_whole= parts == key.ext_key_parts;
      if (is_whole && ((key.flags & HA_NOSAME) || (key.ext_key_flags & HA_EXT_NOSAME)))
      {
        result= 1;
        continue;
      }
      std::vector<pantile_value> found;
      std::vector<pantile_value> at;
      pantile_row *sampled= pantile_row_new();
      uint distinct= 0;
      uint64_t rows= 0;
      pantile_range range= {};
      range.limit= 1;
      for (; distinct < SAMPLED_KEYS; distinct++)
      {
        pantile_cursor *place;
        const int code= k == shape.primary ? pantile_scan(reading.txn, share->table, &range, &place)
                                           : pantile_scan_index(reading.txn, indexes[k], &range, &place);
        if (code != PANTILE_OK)
          break;
        const int next= pantile_cursor_next(place, reading.txn, sampled);
        pantile_cursor_free(place);
        if (next != PANTILE_OK)
          break;
        found.resize(shape.columns);
        pantile_row_values(sampled, found.data(), found.size());
        shape.key_of_row(k, found.data(), at);
        range.from= {PANTILE_EXCLUDED, at.data(), parts};
      }
      if (distinct == SAMPLED_KEYS)
      {
        pantile_range up_to= {};
        up_to.to= {PANTILE_INCLUDED, at.data(), parts};
        rows= estimate(k, up_to);
      }
      else
        rows= estimate(MAX_KEY, pantile_range{});
      result= distinct ? (ulong) std::max<uint64_t>(1, (rows + distinct / 2) / distinct) : 1;
      pantile_row_free(sampled);
    }
  }
}

ha_rows ha_pantile::records_in_range(uint index, const key_range *min, const key_range *max, page_range *)
{
  pantile_range range= {};
  if (min)
  {
    const bool is_whole= shape.encode_key(table, index, min->key, min->length, key_scratch, key_values);
    range.from= from_key(key_values, is_whole, min->flag != HA_READ_AFTER_KEY);
  }
  if (max)
  {
    const bool is_whole= shape.encode_key(table, index, max->key, max->length, end_scratch, end_values);
    range.to= to_key(end_values, is_whole, max->flag != HA_READ_BEFORE_KEY);
  }
  /* The optimizer takes none for a promise. */
  return std::max<uint64_t>(estimate(index, range), 1);
}

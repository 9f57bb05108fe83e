/* SPDX-License-Identifier: GPL-2.0-only */
#include "shape.h"
#include <algorithm>

const char *const ROW_NUMBER= "row";

/* The most bytes of a key in the engine, which doubles zero bytes of sort keys and adds an end to each. */
static const uint MOST_KEY_BYTES= 3064;

std::string field_name(uint field) { return "f" + std::to_string(field); }

std::string Sort_column::name() const
{
  return "s" + std::to_string(field) + "." + std::to_string(length) + (descends ? "d" : "a");
}

std::string Key_shape::null_name() const
{
  std::string name= "n";
  for (uint field : null_fields)
    name+= std::to_string(field) + ".";
  return name;
}

static bool is_varchar(const Field *field)
{
  return field->real_type() == MYSQL_TYPE_VARCHAR || field->real_type() == MYSQL_TYPE_VARCHAR_COMPRESSED;
}

static bool is_plain(const Field *field, const Type_handler *handler) { return field->type_handler() == handler; }

static Stored_field stored_field(const Field *field, uint number)
{
  Stored_field stored= {Stored_field::RAW, number, 0, field->pack_length(), false, false};
  switch (field->real_type())
  {
  case MYSQL_TYPE_TINY: case MYSQL_TYPE_SHORT: case MYSQL_TYPE_INT24: case MYSQL_TYPE_LONG: case MYSQL_TYPE_LONGLONG:
    stored.kind= Stored_field::INTEGER;
    stored.is_signed= !field->is_unsigned();
    stored.sorts= true;
    break;
  case MYSQL_TYPE_YEAR: case MYSQL_TYPE_NEWDATE: case MYSQL_TYPE_ENUM: case MYSQL_TYPE_SET:
    stored.kind= Stored_field::INTEGER;
    stored.sorts= true;
    break;
  case MYSQL_TYPE_NEWDECIMAL: case MYSQL_TYPE_TIMESTAMP2: case MYSQL_TYPE_DATETIME2: case MYSQL_TYPE_TIME2:
    stored.sorts= true;
    break;
  case MYSQL_TYPE_STRING:
    if (!is_plain(field, &type_handler_string))
      break;
    stored.sorts= field->charset() == &my_charset_bin;
    if (!stored.sorts)
      stored.kind= Stored_field::PADDED;
    break;
  case MYSQL_TYPE_VARCHAR:
    stored.kind= Stored_field::VARIABLE;
    stored.sorts= field->charset() == &my_charset_bin && is_plain(field, &type_handler_varchar);
    break;
  case MYSQL_TYPE_VARCHAR_COMPRESSED:
    stored.kind= Stored_field::VARIABLE;
    break;
  case MYSQL_TYPE_BLOB_COMPRESSED: case MYSQL_TYPE_TINY_BLOB: case MYSQL_TYPE_BLOB: case MYSQL_TYPE_MEDIUM_BLOB: case MYSQL_TYPE_LONG_BLOB:
  case MYSQL_TYPE_GEOMETRY:
    stored.kind= Stored_field::LARGE;
    break;
  default:
    break;
  }
  /* The engine has no values of no bytes and one length. */
  if (stored.kind == Stored_field::RAW && stored.width == 0)
    stored.kind= Stored_field::VARIABLE, stored.sorts= false;
  return stored;
}

pantile_type engine_type(const Field *field, const Stored_field &stored)
{
  switch (stored.kind)
  {
  case Stored_field::INTEGER:
  {
    const uint32_t size= stored.width == 3 ? 4 : stored.width > 4 ? 8 : stored.width;
    return {stored.is_signed ? PANTILE_TYPE_INT : PANTILE_TYPE_UINT, size, 0};
  }
  case Stored_field::RAW:
    return {PANTILE_TYPE_FIXED_BYTES, stored.width, 0};
  case Stored_field::PADDED: case Stored_field::VARIABLE:
    return {PANTILE_TYPE_BYTES, std::max(field->field_length, 1U), 0};
  case Stored_field::LARGE:
    break;
  }
  return {PANTILE_TYPE_BYTES, UINT_MAX32, 0};
}

/* The weights of one space, on this level, or on all with 0. */
static size_t space_weight(CHARSET_INFO *cs, uint level, uchar *to, size_t room)
{
  uchar space[8];
  size_t length= cs->cset->wc_mb(cs, ' ', space, space + sizeof space);
  return cs->coll->strnxfrm(cs, to, room, 1, space, length, level);
}

/* Weights of as many characters as there is room for in so many bytes of a column. Search keys may have more: the rest makes
 * no difference. */
static size_t most_weights(CHARSET_INFO *cs, size_t bytes) { return cs->strnxfrmlen(std::max<size_t>(bytes, 1)) + 16; }

/* Room for the weights of a text that has so many bytes: each may be a character. */
static size_t room_for_weights(CHARSET_INFO *cs, size_t length, size_t most)
{
  return std::min(most_weights(cs, length / cs->mbminlen * cs->mbmaxlen), most);
}

/* Whether there are several levels of weights, which can be had one by one. */
static bool has_levels(CHARSET_INFO *cs) { return cs->uca && cs->levels_for_order != MY_CS_COLL_LEVELS_S1; }

static uint levels(CHARSET_INFO *cs) { return has_levels(cs) ? (uint) __builtin_popcount(cs->levels_for_order) : 1; }

/* Chunks of weights, as add_padded makes them. */
static size_t padded_bytes(size_t weights) { return (weights / 8 + 2) * 9; }

/* Bytes that a sort key may take. */
static uint most_sort_bytes(const Field *field, const Stored_field &stored, uint length)
{
  if (stored.kind == Stored_field::RAW || stored.kind == Stored_field::INTEGER)
    return field->sort_length() + 1;
  const uint bytes= length ? length : field->field_length;
  if (field->charset() == &my_charset_bin)
    return bytes + 1;
  return (uint) std::min<size_t>(padded_bytes(most_weights(field->charset(), bytes)) + 18 * levels(field->charset()), 65000);
}

static bool is_whole(const KEY_PART_INFO &part, const Field *field, const Stored_field &stored)
{
  return stored.kind != Stored_field::LARGE && part.length >= field->key_length();
}

/* Bytes that a column takes in a key at most, with its end. */
static uint most_key_bytes(const Field *field, const Stored_field &stored)
{
  return stored.kind == Stored_field::VARIABLE ? field->field_length * 2 + 3 : stored.width + 2;
}

/* The same of a sort key, before zero bytes are doubled. What descends is turned around, with its own zero bytes doubled. */
static uint most_sort_column_bytes(const Field *field, const Stored_field &stored, uint length, bool descends)
{
  const uint bytes= most_sort_bytes(field, stored, length);
  return descends ? bytes * 2 + 4 : bytes;
}

/* How many parts a key has in the engine. One that is not unique ends with the primary key, as the server's extended keys
 * do, unless sort keys would have to be shorter for that. */
static uint extended_parts(TABLE *table, uint number)
{
  const KEY &key= table->s->key_info[number];
  if ((key.flags & HA_NOSAME) || key.ext_key_parts <= key.user_defined_key_parts)
    return key.user_defined_key_parts;
  uint bytes= 0;
  for (uint p= 0; p < key.ext_key_parts; p++)
  {
    const KEY_PART_INFO &part= key.key_part[p];
    const Field *field= table->field[part.fieldnr - 1];
    const Stored_field stored= stored_field(field, part.fieldnr - 1);
    const bool descends= part.key_part_flag & HA_REVERSE_SORT;
    if (stored.sorts && !descends && is_whole(part, field, stored))
      bytes+= most_key_bytes(field, stored);
    else
      bytes+= most_sort_column_bytes(field, stored, is_whole(part, field, stored) ? 0 : part.length, descends) * 2 + 4;
  }
  return bytes <= MOST_KEY_BYTES ? key.ext_key_parts : key.user_defined_key_parts;
}

int Shape::add_keys(TABLE *table, std::string *why)
{
  TABLE_SHARE *share= table->s;
  primary= share->primary_key;
  keys.clear();
  for (uint k= 0; k < share->keys; k++)
  {
    const KEY &key= table->key_info[k];
    Key_shape shape= {k == primary ? "" : std::string(key.name.str, key.name.length), (key.flags & HA_NOSAME) != 0, {}, {}, 0};
    uint fixed= 0, most= 0;
    std::vector<size_t> sorted;
    for (uint p= 0, parts= extended_parts(table, k); p < parts; p++)
    {
      const KEY_PART_INFO &part= key.key_part[p];
      const Field *field= table->field[part.fieldnr - 1];
      int number= -1;
      for (size_t f= 0; f < fields.size(); f++)
        if (fields[f].field == part.fieldnr - 1U)
          number= (int) f;
      const bool descends= part.key_part_flag & HA_REVERSE_SORT;
      const Stored_field stored= stored_field(field, part.fieldnr - 1);
      const bool whole= is_whole(part, field, stored);
      if (number >= 0 && fields[number].sorts && whole && !descends)
      {
        shape.parts.push_back({0, number, -1});
        fixed+= most_key_bytes(field, stored);
        continue;
      }
      const bool is_nullable= k != primary;
      if (descends && shape.is_unique && field->real_maybe_null())
        shape.null_fields.push_back(part.fieldnr - 1);
      const uint length= whole ? 0 : part.length;
      Sort_column sort= {part.fieldnr - 1U, stored, length, descends, is_nullable,
                         most_sort_column_bytes(field, stored, length, descends), 0};
      size_t s= 0;
      while (s < sorts.size() && sorts[s].name() != sort.name())
        s++;
      if (s == sorts.size())
        sorts.push_back(sort);
      sorts[s].is_nullable&= is_nullable;
      shape.parts.push_back({0, -1, (int) s});
      sorted.push_back(s);
      most+= sorts[s].most * 2 + 4;
    }
    if (!shape.null_fields.empty())
      fixed+= 4;
    /* Sort keys may take more than they have room for, but hardly ever do. */
    if (fixed + most > MOST_KEY_BYTES && most > 0)
      for (size_t s : sorted)
      {
        const uint room= fixed < MOST_KEY_BYTES ? (MOST_KEY_BYTES - fixed) / (uint) sorted.size() : 0;
        if (room < 32)
        {
          *why= "a key of more bytes than an index takes";
          return HA_ERR_UNSUPPORTED;
        }
        sorts[s].most= std::min(sorts[s].most, (room - 4) / 2);
      }
    keys.push_back(shape);
  }
  return 0;
}

int Shape::make(TABLE *table, std::string *why)
{
  fields.clear();
  sorts.clear();
  for (uint f= 0; f < table->s->fields; f++)
    if (table->field[f]->stored_in_db())
      fields.push_back(stored_field(table->field[f], f));
  if (int error= add_keys(table, why))
    return error;
  columns= 0;
  for (Stored_field &field : fields)
    field.column= columns++;
  for (Sort_column &sort : sorts)
    sort.column= columns++;
  for (Key_shape &key : keys)
    if (!key.null_fields.empty())
    {
      const auto same= std::find_if(keys.begin(), keys.end(),
                                    [&](const Key_shape &other) { return other.null_name() == key.null_name(); });
      key.null_column= &*same == &key ? columns++ : same->null_column;
    }
  row_number= columns;
  if (primary == MAX_KEY)
    columns++;
  for (Key_shape &key : keys)
    for (Part &part : key.parts)
      part.column= part.field >= 0 ? fields[part.field].column : sorts[part.sort].column;
  return 0;
}

bool Shape::find(TABLE *table, const pantile_table *engine)
{
  std::string why;
  if (make(table, &why))
    return false;
  columns= pantile_table_columns(engine);
  auto place= [engine](const std::string &name, size_t *column) {
    return pantile_table_column_number(engine, name.c_str(), column) == PANTILE_OK;
  };
  for (Stored_field &field : fields)
  {
    pantile_type type, wanted= engine_type(table->field[field.field], field);
    bool nullable;
    if (!place(field_name(field.field), &field.column) ||
        pantile_table_column(engine, field.column, nullptr, &type, &nullable) != PANTILE_OK ||
        type.kind != wanted.kind || type.size != wanted.size ||
        nullable != table->field[field.field]->real_maybe_null())
      return false;
  }
  for (Sort_column &sort : sorts)
  {
    pantile_type type;
    if (!place(sort.name(), &sort.column) ||
        pantile_table_column(engine, sort.column, nullptr, &type, nullptr) != PANTILE_OK)
      return false;
    sort.most= type.size;
  }
  for (Key_shape &key : keys)
    if (!key.null_fields.empty() && !place(key.null_name(), &key.null_column))
      return false;
  if ((primary == MAX_KEY) != place(ROW_NUMBER, &row_number))
    return false;
  for (Key_shape &key : keys)
    for (Part &part : key.parts)
      part.column= part.field >= 0 ? fields[part.field].column : sorts[part.sort].column;
  return true;
}

pantile_table_def *Shape::definition(TABLE *table, const std::string &name) const
{
  pantile_table_def *def;
  if (pantile_table_def_new(name.c_str(), &def) != PANTILE_OK)
    return nullptr;
  std::vector<std::string> names(columns);
  int code= PANTILE_OK;
  auto column= [&](size_t number, const std::string &column_name, pantile_type type, bool nullable) {
    names[number]= column_name;
    code= code == PANTILE_OK ? pantile_table_def_column(def, column_name.c_str(), type, nullable) : code;
  };
  for (const Stored_field &field : fields)
    column(field.column, field_name(field.field), engine_type(table->field[field.field], field),
           table->field[field.field]->real_maybe_null());
  for (const Sort_column &sort : sorts)
    column(sort.column, sort.name(), {PANTILE_TYPE_BYTES, sort.most, 0}, sort.is_nullable);
  for (const Key_shape &key : keys)
    if (!key.null_fields.empty() && names[key.null_column].empty())
      column(key.null_column, key.null_name(), {PANTILE_TYPE_BOOL, 0, 0}, true);
  if (primary == MAX_KEY)
  {
    column(row_number, ROW_NUMBER, {PANTILE_TYPE_UINT, 8, 0}, false);
    code= code == PANTILE_OK ? pantile_table_def_primary_key(def, &ROW_NUMBER, 1) : code;
  }
  for (size_t k= 0; k < keys.size(); k++)
  {
    std::vector<const char *> parts;
    for (const Part &part : keys[k].parts)
      parts.push_back(names[part.column].c_str());
    if (!keys[k].null_fields.empty())
      parts.push_back(names[keys[k].null_column].c_str());
    if (code == PANTILE_OK)
      code= k == primary ? pantile_table_def_primary_key(def, parts.data(), parts.size())
                         : pantile_table_def_index(def, keys[k].name.c_str(), parts.data(), parts.size(),
                                                   keys[k].is_unique);
  }
  if (code == PANTILE_OK)
    return def;
  pantile_table_def_free(def);
  return nullptr;
}

/* Where a field's bytes are in a record, and how many they are. */
static const uchar *data_of(const Field *field, const Stored_field::Kind kind, const uchar *record, size_t *length)
{
  const uchar *at= record + (field->ptr - field->table->record[0]);
  switch (kind)
  {
  case Stored_field::VARIABLE:
  {
    if (!is_varchar(field))
      break;
    const uint bytes= static_cast<const Field_varstring *>(field)->length_bytes;
    *length= bytes == 1 ? *at : uint2korr(at);
    return at + bytes;
  }
  case Stored_field::LARGE:
  {
    const Field_blob *blob= static_cast<const Field_blob *>(field);
    *length= blob->get_length(at);
    const uchar *data;
    memcpy(&data, at + blob->pack_length_no_ptr(), sizeof data);
    return data;
  }
  default:
    break;
  }
  *length= field->pack_length();
  return at;
}

static bool is_null(const Field *field, const uchar *record)
{
  return field->real_maybe_null() && field->is_null_in_record(record);
}

static pantile_value bytes_value(const uchar *data, size_t length) { return pantile_bytes(data, length); }

static pantile_value integer_value(const Stored_field &stored, const uchar *at)
{
  uint64_t bits= 0;
  for (uint b= 0; b < stored.width; b++)
    bits|= (uint64_t) at[b] << (8 * b);
  if (!stored.is_signed)
    return pantile_uint(bits);
  const uint shift= 64 - 8 * stored.width;
  return pantile_int((int64_t) (bits << shift) >> shift);
}

static pantile_value field_value(const Field *field, const Stored_field &stored, const uchar *data, size_t length)
{
  if (stored.kind == Stored_field::INTEGER)
    return integer_value(stored, data);
  if (stored.kind == Stored_field::PADDED)
    length= field->charset()->lengthsp((const char *) data, length);
  return bytes_value(data, length);
}

/* Weights of one level in chunks, each followed by a byte that says whether what comes next is below, equal to or above
 * nothing but spaces; with the second it ends. So keys compare as if they were padded with spaces without end, and no
 * key is the beginning of another. (MyRocks stores its keys in a similar way.) */
static void add_padded(CHARSET_INFO *cs, uint level, const uchar *weights, size_t length, std::vector<uchar> &to)
{
  uchar space[32];
  const size_t unit= space_weight(cs, level, space, sizeof space);
  const size_t chunk= unit == 3 ? 9 : 8;
  auto pad= [&](size_t at) { return unit ? space[at % unit] : 0; };
  auto next= [&](size_t from) {
    for (size_t at= from; at < length; at++)
      if (weights[at] != pad(at))
        return weights[at] < pad(at) ? 1 : 3;
    return 2;
  };
  size_t at= 0;
  for (;;)
  {
    for (size_t end= at + chunk; at < end; at++)
      to.push_back(at < length ? weights[at] : pad(at));
    const int rest= next(at);
    to.push_back((uchar) rest);
    if (rest == 2)
      return;
  }
}

/* The weights of each level, one after the other. Where the server compares without padding, a level ends with a weight
 * that no character has and that is below all others: that is the first one of NOPAD collations, and all of their CHAR
 * columns. */
static void add_levels(CHARSET_INFO *cs, const uchar *data, size_t length, size_t most, bool is_char,
                       std::vector<uchar> &to)
{
  std::vector<uchar> weights(room_for_weights(cs, length, most));
  for (uint n= 0; n < MY_STRXFRM_NLEVELS; n++)
  {
    if (!(cs->levels_for_order & (1 << n)))
      continue;
    const uint level= MY_STRXFRM_LEVEL1 << n;
    const size_t made= cs->coll->strnxfrm(cs, weights.data(), weights.size(), (uint) weights.size(), data, length, level);
    if ((cs->state & MY_CS_NOPAD) && (n == 0 || is_char))
    {
      to.insert(to.end(), weights.data(), weights.data() + made);
      to.insert(to.end(), 2, 0);
    }
    else
      add_padded(cs, level, weights.data(), made, to);
  }
}

/* Big5 is compared by codes, but its weights are by strokes, so that the server's two ways of sorting differ. Indexes
 * have the order of comparison. */
static bool is_compared_by_code(CHARSET_INFO *cs) { return !strncmp(cs->coll_name.str, "big5_chinese", 12); }

/* The spaces at the end are left out, and then the shorter text comes first. */
static bool is_compared_trimmed(CHARSET_INFO *cs) { return !strcmp(cs->coll_name.str, "cp1250_czech_cs"); }

static size_t codes(CHARSET_INFO *cs, const uchar *data, size_t length, uchar *to)
{
  for (size_t at= 0; at < length;)
    if (my_ismbchar(cs, (const char *) data + at, (const char *) data + length))
    {
      to[at]= data[at];
      to[at + 1]= data[at + 1];
      at+= 2;
    }
    else
    {
      to[at]= cs->sort_order[data[at]];
      at++;
    }
  return length;
}

/* The weights of a text, of which as many bytes count. */
static void add_weights(CHARSET_INFO *cs, const uchar *data, size_t length, uint bytes, bool is_char,
                        std::vector<uchar> &to)
{
  const size_t most= most_weights(cs, bytes);
  if (has_levels(cs))
    return add_levels(cs, data, length, most, is_char, to);
  const bool pads= !(cs->state & MY_CS_NOPAD) && !is_compared_trimmed(cs);
  const bool by_weight= pads && cs->levels_for_order == MY_CS_COLL_LEVELS_S1;
  std::vector<uchar> weights(room_for_weights(cs, length, most));
  size_t count= weights.size();
  uint flags= 0;
  if (pads && !by_weight)
  {
    /* Several levels of weights follow each other, so each must have the length of the longest text. */
    count= bytes / cs->mbmaxlen * std::max<uint>(cs->strxfrm_multiply, 1);
    flags= MY_STRXFRM_PAD_WITH_SPACE;
    weights.resize(most);
  }
  const size_t made= is_compared_by_code(cs)
                         ? codes(cs, data, std::min(length, weights.size()), weights.data())
                         : cs->coll->strnxfrm(cs, weights.data(), weights.size(), (uint) count, data, length, flags);
  if (by_weight)
    add_padded(cs, 0, weights.data(), made, to);
  else
    to.insert(to.end(), weights.data(), weights.data() + made);
}

/* The sort key of a text in a collation. */
static void add_text(const Field *field, const Sort_column &column, const uchar *data, size_t length,
                     std::vector<uchar> &to)
{
  CHARSET_INFO *cs= field->charset();
  const uint bytes= column.length ? column.length : field->field_length;
  const bool is_char= column.of.kind == Stored_field::PADDED;
  if (is_char || is_compared_trimmed(cs))
    length= cs->lengthsp((const char *) data, length);
  if (!is_char || !(cs->state & MY_CS_NOPAD))
    return add_weights(cs, data, length, bytes, is_char, to);
  /* As many characters as the column has, with spaces at the end, are compared. */
  const size_t characters= bytes / cs->mbmaxlen;
  const size_t has= cs->numchars((const char *) data, (const char *) data + length);
  std::vector<uchar> filled(data, data + length);
  filled.resize(length + (characters > has ? characters - has : 0) * cs->mbminlen);
  cs->cset->fill(cs, (char *) filled.data() + length, filled.size() - length, ' ');
  add_weights(cs, filled.data(), filled.size(), bytes, is_char, to);
}

bool Shape::sort_key(TABLE *table, const Sort_column &column, const uchar *data, size_t length,
                     std::vector<uchar> &to) const
{
  Field *field= table->field[column.field];
  const Stored_field &stored= column.of;
  to.clear();
  if (!data)
  {
    /* Only for parts that descend; NULL comes last there. */
    to.push_back(0);
  }
  else
  {
    if (column.descends)
      to.push_back(1);
    const size_t begin= to.size();
    if (stored.kind == Stored_field::RAW || stored.kind == Stored_field::INTEGER)
    {
      to.resize(begin + field->sort_length());
      if (column.length && is_plain(field, &type_handler_string))
        to.resize(begin + column.length), memcpy(to.data() + begin, data, std::min<size_t>(length, column.length));
      else
      {
        uchar *const own= field->ptr;
        field->ptr= const_cast<uchar *>(data);
        field->sort_string(to.data() + begin, field->sort_length());
        field->ptr= own;
      }
    }
    else
    {
      CHARSET_INFO *cs= field->charset();
      if (column.length)
      {
        const size_t most= column.length / cs->mbmaxlen;
        if (cs->mbmaxlen > 1)
          length= std::min(length, cs->charpos(data, data + length, most));
        length= std::min<size_t>(length, column.length);
      }
      if (cs == &my_charset_bin)
        to.insert(to.end(), data, data + length);
      else
        add_text(field, column, data, length, to);
    }
  }
  if (column.descends)
  {
    /* The end must be told from what follows before all is turned around. */
    std::vector<uchar> turned;
    for (uchar byte : to)
    {
      turned.push_back((uchar) ~byte);
      if (byte == 0)
        turned.push_back(0);
    }
    turned.push_back(0xff);
    turned.push_back(0xfe);
    to.swap(turned);
  }
  return to.size() <= column.most;
}

pantile_value value_in(const Field *field, const Stored_field &stored, const uchar *record)
{
  if (is_null(field, record))
    return pantile_null();
  size_t length;
  const uchar *data= data_of(field, stored.kind, record, &length);
  return field_value(field, stored, data, length);
}

/* What a record has in the column of a sort key. False if it is too long. */
bool Shape::sort_value(TABLE *table, const Sort_column &sort, const uchar *record, Scratch &scratch,
                       pantile_value *value) const
{
  const Field *field= table->field[sort.field];
  const bool null= is_null(field, record);
  *value= pantile_null();
  if (null && !sort.descends)
    return true;
  static const uchar nothing= 0;
  size_t length= 0;
  const uchar *data= nullptr;
  if (!null && !(data= data_of(field, sort.of.kind, record, &length)))
    data= &nothing;
  std::vector<uchar> &to= scratch.of(sort.column);
  if (!sort_key(table, sort, data, length, to))
    return false;
  *value= bytes_value(to.data(), to.size());
  return true;
}

/* The value of the column that says with its NULL that a unique key may be there several times. */
static pantile_value null_value(TABLE *table, const Key_shape &key, const uchar *record)
{
  for (uint field : key.null_fields)
    if (is_null(table->field[field], record))
      return pantile_null();
  return pantile_bool(true);
}

bool Shape::encode(TABLE *table, const uchar *record, Scratch &scratch, std::vector<pantile_value> &values) const
{
  values.assign(columns, pantile_null());
  scratch.begin(columns);
  for (const Stored_field &stored : fields)
    values[stored.column]= value_in(table->field[stored.field], stored, record);
  for (const Sort_column &sort : sorts)
    if (!sort_value(table, sort, record, scratch, &values[sort.column]))
      return false;
  for (const Key_shape &key : keys)
    if (!key.null_fields.empty())
      values[key.null_column]= null_value(table, key, record);
  return true;
}

bool Shape::encode_changes(TABLE *table, const uchar *before, const uchar *record, Scratch &scratch,
                           Changes &changes) const
{
  changes.columns.clear();
  changes.values.clear();
  changes.fields.assign(table->s->fields, false);
  scratch.begin(columns);
  const auto change= [&](size_t column, pantile_value value) {
    changes.columns.push_back(column);
    changes.values.push_back(value);
  };
  for (const Stored_field &stored : fields)
    if (differs(table, stored, before, record))
    {
      changes.fields[stored.field]= true;
      change(stored.column, value_in(table->field[stored.field], stored, record));
    }
  if (changes.columns.empty())
    return true;
  for (const Sort_column &sort : sorts)
    if (changes.fields[sort.field] || !table->field[sort.field]->stored_in_db())
    {
      pantile_value value;
      if (!sort_value(table, sort, record, scratch, &value))
        return false;
      change(sort.column, value);
    }
  for (const Key_shape &key : keys)
    if (!key.null_fields.empty())
      change(key.null_column, null_value(table, key, record));
  return true;
}

bool Shape::differs(TABLE *table, const Stored_field &stored, const uchar *one, const uchar *other) const
{
  const Field *field= table->field[stored.field];
  if (is_null(field, one) || is_null(field, other))
    return is_null(field, one) != is_null(field, other);
  size_t length, other_length;
  const uchar *data= data_of(field, stored.kind, one, &length);
  const uchar *other_data= data_of(field, stored.kind, other, &other_length);
  return length != other_length || (length && memcmp(data, other_data, length));
}

void Shape::decode(TABLE *table, const pantile_value *values, uchar *record, bool all) const
{
  memcpy(record, table->s->default_values, table->s->null_bytes);
  const my_ptrdiff_t offset= record - table->record[0];
  for (const Stored_field &stored : fields)
  {
    Field *field= table->field[stored.field];
    if (!all && !bitmap_is_set(table->read_set, stored.field))
      continue;
    const pantile_value &value= values[stored.column];
    uchar *at= field->ptr + offset;
    if (value.kind == PANTILE_NULL)
    {
      field->set_null(offset);
      memcpy(at, table->s->default_values + (field->ptr - table->record[0]), field->pack_length());
      continue;
    }
    field->set_notnull(offset);
    const uchar *data= value.as.bytes.data;
    const size_t length= value.as.bytes.len;
    switch (stored.kind)
    {
    case Stored_field::INTEGER:
      for (uint b= 0; b < stored.width; b++)
        at[b]= (uchar) (value.as.natural >> (8 * b));
      break;
    case Stored_field::RAW:
      memcpy(at, data, length);
      break;
    case Stored_field::PADDED:
      memcpy(at, data, length);
      if (length < field->pack_length())
        field->charset()->cset->fill(field->charset(), (char *) at + length, field->pack_length() - length,
                                     field->charset()->pad_char);
      break;
    case Stored_field::VARIABLE:
      if (is_varchar(field))
      {
        const uint bytes= static_cast<Field_varstring *>(field)->length_bytes;
        if (bytes == 1)
          *at= (uchar) length;
        else
          int2store(at, length);
        memcpy(at + bytes, data, length);
      }
      break;
    case Stored_field::LARGE:
    {
      Field_blob *blob= static_cast<Field_blob *>(field);
      for (uint b= 0; b < blob->pack_length_no_ptr(); b++)
        at[b]= (uchar) (length >> (8 * b));
      memcpy(at + blob->pack_length_no_ptr(), &data, sizeof data);
      break;
    }
    }
  }
}

bool Shape::encode_key(TABLE *table, uint number, const uchar *image, uint length, Scratch &scratch,
                       std::vector<pantile_value> &values) const
{
  const KEY &key= table->key_info[number];
  const Key_shape &shape= keys[number];
  values.clear();
  scratch.begin(shape.parts.size());
  const uchar *end= image + length;
  for (size_t p= 0; p < shape.parts.size() && image < end; p++)
  {
    const KEY_PART_INFO &info= key.key_part[p];
    const Part &part= shape.parts[p];
    Field *field= table->field[info.fieldnr - 1];
    const uchar *data= image;
    const bool null= info.null_bit && *data;
    if (info.null_bit)
      data++;
    size_t bytes= info.length;
    if (info.key_part_flag & (HA_VAR_LENGTH_PART | HA_BLOB_PART))
    {
      bytes= uint2korr(data);
      data+= HA_KEY_BLOB_LENGTH;
    }
    image+= info.store_length;
    if (part.field >= 0)
      values.push_back(null ? pantile_null() : field_value(field, fields[part.field], data, bytes));
    else if (null && !sorts[part.sort].descends)
      values.push_back(pantile_null());
    else
    {
      std::vector<uchar> &to= scratch.of(p);
      const bool is_whole= sort_key(table, sorts[part.sort], null ? nullptr : data, bytes, to);
      /* What is stored has no such beginning, or ends there: where sort keys have no end of their own, it comes first. */
      if (!is_whole)
        to.resize(sorts[part.sort].most);
      values.push_back(bytes_value(to.data(), to.size()));
      if (!is_whole)
        return false;
    }
  }
  return true;
}

static pantile_bound bound(bool includes, const std::vector<pantile_value> &key)
{
  return {key.empty() ? PANTILE_UNBOUNDED : includes ? PANTILE_INCLUDED : PANTILE_EXCLUDED, key.data(), key.size()};
}

pantile_bound from_key(const std::vector<pantile_value> &key, bool is_whole, bool includes)
{
  return bound(includes && is_whole, key);
}

pantile_bound to_key(const std::vector<pantile_value> &key, bool is_whole, bool includes)
{
  return bound(includes || !is_whole, key);
}

void Shape::keep_parts(TABLE *table, uint number, size_t parts)
{
  const KEY &defined= table->s->key_info[number];
  KEY &key= table->key_info[number];
  if (parts < keys[number].parts.size())
    keys[number].parts.resize(std::max<size_t>(parts, defined.user_defined_key_parts));
  const bool is_whole= keys[number].parts.size() >= defined.ext_key_parts;
  key.ext_key_parts= is_whole ? defined.ext_key_parts : defined.user_defined_key_parts;
  key.ext_key_flags= is_whole ? defined.ext_key_flags : defined.flags;
  key.ext_key_part_map= is_whole ? defined.ext_key_part_map : 0;
}

void Shape::key_of_row(uint key, const pantile_value *row, std::vector<pantile_value> &values) const
{
  values.clear();
  for (const Part &part : keys[key].parts)
    values.push_back(row[part.column]);
}

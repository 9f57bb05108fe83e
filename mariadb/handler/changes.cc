/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of columns that leave a table's rows as they are: ALTER TABLE in a moment. */
#include "shape.h"
#include <algorithm>
#include <map>

namespace
{
  /* The number that each field of the old definition has in the new one, or -1, and the other way round. */
  struct Moves
  {
    std::vector<int> to, from;

    bool find(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info)
    {
      to.assign(table->s->fields, -1);
      List_iterator_fast<Create_field> fields(info->alter_info->create_list);
      while (const Create_field *field= fields++)
      {
        if (field->field)
          to[field->field->field_index]= (int) from.size();
        from.push_back(field->field ? field->field->field_index : -1);
      }
      return from.size() == altered->s->fields;
    }
  };

  /* Whether rows that are there get one value, without a look at them. */
  bool has_one_default(const TABLE *altered, const Field *field)
  {
    return !field->default_value && !field->vcol_info && !field->has_default_now_unireg_check() &&
           !field->compression_method() && !field->check_constraint && field != altered->found_next_number_field;
  }

  class Steps
  {
  public:
    explicit Steps(pantile_table_change *change) : change(change) {}

    void rename(const std::string &from, const std::string &to)
    {
      if (from != to)
        renamed.push_back({from, to});
    }
    void note(int code) { failed|= code != PANTILE_OK; }

    /* Names may go round in a circle, so all leave theirs first. */
    bool finish()
    {
      for (auto &[from, to] : renamed)
        note(pantile_table_change_rename_column(change, from.c_str(), ("to " + to).c_str()));
      for (auto &[from, to] : renamed)
        note(pantile_table_change_rename_column(change, ("to " + to).c_str(), to.c_str()));
      return !failed;
    }

  private:
    pantile_table_change *change;
    std::vector<std::pair<std::string, std::string>> renamed;
    bool failed= false;
  };
}

static bool is_integer(const Type_handler *type)
{
  switch (type->real_field_type())
  {
  case MYSQL_TYPE_TINY: case MYSQL_TYPE_SHORT: case MYSQL_TYPE_INT24: case MYSQL_TYPE_LONG: case MYSQL_TYPE_LONGLONG:
    return true;
  default:
    return false;
  }
}

bool holds_all_of(const Field *field, const Column_definition &type)
{
  const Type_handler *was= field->type_handler(), *is= type.type_handler();
  /* What is computed of an integer with leading zeros depends on its width. */
  if (is_integer(was) && is_integer(is))
    return !((field->flags | type.flags) & ZEROFILL_FLAG) &&
           field->is_unsigned() == ((type.flags & UNSIGNED_FLAG) != 0) && type.pack_length >= field->pack_length();
  if (field->charset() != type.charset || field->compression_method() || type.compression_method())
    return false;
  if (is == was && is->real_field_type() == MYSQL_TYPE_VARCHAR)
    return type.length >= field->field_length;
  const bool are_blobs= dynamic_cast<const Type_handler_blob_common *>(was) &&
                        dynamic_cast<const Type_handler_blob_common *>(is);
  return are_blobs && type.pack_length >= field->pack_length();
}

bool Shape::has_key_with(uint field) const
{
  for (const Key_shape &key : keys)
    for (const Part &part : key.parts)
      if ((part.field >= 0 ? fields[part.field].field : sorts[part.sort].field) == field)
        return true;
  return false;
}

std::vector<std::string> Shape::names_of(const Key_shape &key) const
{
  std::vector<std::string> names;
  for (const Part &part : key.parts)
    names.push_back(part.field >= 0 ? field_name(fields[part.field].field) : sorts[part.sort].name());
  if (!key.null_fields.empty())
    names.push_back(key.null_name());
  return names;
}

/* The columns beside those of fields. */
std::set<std::string> Shape::names_for_keys() const
{
  std::set<std::string> names;
  for (const Sort_column &sort : sorts)
    names.insert(sort.name());
  for (const Key_shape &key : keys)
    if (!key.null_fields.empty())
      names.insert(key.null_name());
  if (primary == MAX_KEY)
    names.insert(ROW_NUMBER);
  return names;
}

bool Shape::keeps_keys_of(const Shape &other) const
{
  const std::set<std::string> kept= names_for_keys(), wanted= other.names_for_keys();
  return std::includes(kept.begin(), kept.end(), wanted.begin(), wanted.end());
}

bool Shape::change_to(TABLE *table, const pantile_table *engine, TABLE *altered, const Alter_inplace_info *info,
                      pantile_table_change *change) const
{
  Moves moves;
  Shape after;
  std::string why;
  if (!moves.find(table, altered, info) || after.make(altered, &why) || after.keys.size() != keys.size() ||
      after.primary != primary || after.sorts.size() != sorts.size())
    return false;
  Steps steps(change);
  /* What the engine's columns are called then. */
  std::map<std::string, std::string> then;
  auto called= [&](const std::string &from, const std::string &to) {
    then[from]= to;
    steps.rename(from, to);
  };
  /* What keys have left behind that were dropped goes now: it would have the name of another field then. */
  std::set<std::string> known= names_for_keys();
  for (const Stored_field &field : fields)
    known.insert(field_name(field.field));
  for (size_t column= 0; column < columns; column++)
  {
    const char *name;
    if (pantile_table_column(engine, column, &name, nullptr, nullptr) != PANTILE_OK)
      return false;
    if (!known.count(name))
      steps.note(pantile_table_change_drop_column(change, name));
  }
  for (const Stored_field &field : fields)
  {
    const std::string name= field_name(field.field);
    const int to= moves.to[field.field];
    if (to < 0)
    {
      if (has_key_with(field.field))
        return false;
      steps.note(pantile_table_change_drop_column(change, name.c_str()));
      continue;
    }
    const auto same= std::find_if(after.fields.begin(), after.fields.end(),
                                  [&](const Stored_field &other) { return other.field == (uint) to; });
    if (same == after.fields.end() || same->kind != field.kind || same->is_signed != field.is_signed)
      return false;
    const pantile_type type= engine_type(table->field[field.field], field);
    const pantile_type wanted= engine_type(altered->field[to], *same);
    const bool widens= wanted.kind != PANTILE_TYPE_FIXED_BYTES && wanted.size > type.size;
    const bool takes_null= altered->field[to]->real_maybe_null();
    const bool took_null= table->field[field.field]->real_maybe_null();
    if (type.kind != wanted.kind || (type.size != wanted.size && !widens) || (took_null && !takes_null) ||
        ((widens || takes_null != took_null) && has_key_with(field.field)))
      return false;
    if (widens)
      steps.note(pantile_table_change_widen_column(change, name.c_str(), wanted));
    if (takes_null != took_null)
      steps.note(pantile_table_change_make_nullable(change, name.c_str()));
    called(name, field_name(to));
  }
  for (const Sort_column &sort : sorts)
  {
    const int to= moves.to[sort.field];
    Sort_column moved= sort;
    moved.field= (uint) to;
    if (to < 0 || std::none_of(after.sorts.begin(), after.sorts.end(),
                               [&](const Sort_column &other) { return other.name() == moved.name(); }))
      return false;
    called(sort.name(), moved.name());
  }
  for (size_t k= 0; k < keys.size(); k++)
  {
    Key_shape moved= keys[k];
    for (uint &field : moved.null_fields)
      field= (uint) moves.to[field];
    if (!moved.null_fields.empty() && !then.count(keys[k].null_name()))
      called(keys[k].null_name(), moved.null_name());
    std::vector<std::string> names= names_of(keys[k]);
    /* An index that ends without the primary key stays as it is. */
    if (keys[k].parts.size() >= altered->s->key_info[k].user_defined_key_parts &&
        keys[k].parts.size() < after.keys[k].parts.size())
      after.keys[k].parts.resize(keys[k].parts.size());
    for (std::string &name : names)
      name= then[name];
    if (keys[k].name != after.keys[k].name || keys[k].is_unique != after.keys[k].is_unique ||
        names != after.names_of(after.keys[k]))
      return false;
  }
  if (!steps.finish())
    return false;
  for (const Stored_field &field : after.fields)
  {
    if (moves.from[field.field] >= 0)
      continue;
    const Field *added= altered->field[field.field];
    if (!has_one_default(altered, added))
      return false;
    const pantile_value value= value_in(added, field, altered->s->default_values);
    if (pantile_table_change_add_column(change, field_name(field.field).c_str(), engine_type(added, field),
                                        added->real_maybe_null(), &value, nullptr) != PANTILE_OK)
      return false;
  }
  return true;
}

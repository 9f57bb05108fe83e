/* SPDX-License-Identifier: GPL-2.0-only */
/* How a table of the server lies in a table of the engine.
 *
 * Each stored field has a column of its own. Where the engine's order of a column is the server's order of the field,
 * keys use that column. Where it is not (text in a collation, floating-point numbers, prefixes, descending parts), a
 * key part has a column more, with the bytes by which the server sorts: its sort key. docs/mariadb.md, "Keys". */
#ifndef PANTILE_SHAPE_H
#define PANTILE_SHAPE_H

#include "common.h"
#include <set>

/* A column of the engine that holds a field. */
struct Stored_field
{
  enum Kind
  {
    INTEGER,   /* also YEAR, DATE, ENUM and SET: their codes */
    RAW,       /* the field's own bytes, of one length */
    PADDED,    /* CHAR: without the spaces at its end */
    VARIABLE,  /* VARCHAR and VARBINARY */
    LARGE      /* BLOB and TEXT */
  };

  Kind kind;
  uint field;          /* its number in the table */
  size_t column;       /* the engine's number */
  uint width;          /* of INTEGER: its bytes */
  bool is_signed;      /* of INTEGER */
  bool sorts;          /* the engine's order is the server's */
};

/* A column of the engine that holds a sort key. */
struct Sort_column
{
  uint field;
  Stored_field of;     /* how the field is stored, or would be */
  uint length;         /* bytes of the field that count; 0 for all */
  bool descends;
  bool is_nullable;
  uint most;           /* bytes that it takes */
  size_t column;
  std::string name() const;
};

/* A part of a key. */
struct Part
{
  size_t column;
  int field;           /* in `Shape::fields`, or -1 */
  int sort;            /* in `Shape::sorts`, or -1 */
};

struct Key_shape
{
  std::string name;    /* of the index; empty for the primary key */
  bool is_unique;
  std::vector<Part> parts;   /* behind the server's own, those of the primary key that it does not have */
  /* Of a unique key with descending parts that take NULL: the fields of these. Their sort keys are never NULL for the
   * engine, so a column more, behind the parts, says with its NULL that the key may be there several times. */
  std::vector<uint> null_fields;
  size_t null_column;
  std::string null_name() const;
};

/* What takes the bytes that a row's values point to, until the row has been handed over. */
class Scratch
{
public:
  void begin(size_t columns) { if (buffers.size() < columns) buffers.resize(columns); }
  std::vector<uchar> &of(size_t column) { return buffers[column]; }
private:
  std::vector<std::vector<uchar>> buffers;
};

/* What an UPDATE changes in a row: columns of the engine and what they are set to. */
struct Changes
{
  std::vector<size_t> columns;
  std::vector<pantile_value> values;
  std::vector<bool> fields;   /* by the server's numbers */
};

class Shape
{
public:
  std::vector<Stored_field> fields;
  std::vector<Sort_column> sorts;
  std::vector<Key_shape> keys;         /* as the server numbers them */
  uint primary;                        /* the key that is the primary one; MAX_KEY if rows have a number instead */
  size_t columns;                      /* of the engine's table */
  size_t row_number;                   /* the column with the number of rows that have no primary key */

  /* What a table of this definition is to be. Returns an error of the handler, with its message in `why`. */
  int make(TABLE *table, std::string *why);

  /* Finds the columns in a table of the engine. Returns false if they are not those of this definition. */
  bool find(TABLE *table, const pantile_table *engine);

  pantile_table_def *definition(TABLE *table, const std::string &name) const;

  /* Notes what makes the engine's table one of a changed definition. False if its rows would have to be written again. */
  bool change_to(TABLE *table, const pantile_table *engine, TABLE *altered, const Alter_inplace_info *info,
                 pantile_table_change *change) const;

  /* Whether rows have all sort keys of another definition. The engine's table may have columns for more: of keys that
   * were dropped, in which nothing is written any more. */
  bool keeps_keys_of(const Shape &other) const;

  /* The values of a record, in the order of the engine's columns. False if a sort key is too long. */
  bool encode(TABLE *table, const uchar *record, Scratch &scratch, std::vector<pantile_value> &values) const;

  /* The values of a record that are not those of the record `before`. False if a sort key is too long. */
  bool encode_changes(TABLE *table, const uchar *before, const uchar *record, Scratch &scratch, Changes &changes) const;

  /* Whether two records have different values of a field. */
  bool differs(TABLE *table, const Stored_field &field, const uchar *one, const uchar *other) const;

  /* Fills a record. */
  void decode(TABLE *table, const pantile_value *values, uchar *record, bool all) const;

  /* The values of a search key of the server, one for each part that it has. Returns false if a part is longer than any that
   * is stored: then they end with the beginning of it, and all keys that begin like them lie before the one that is
   * searched. */
  bool encode_key(TABLE *table, uint key, const uchar *image, uint length, Scratch &scratch,
                  std::vector<pantile_value> &values) const;

  /* The engine's index of a key has so many columns. If the server takes the key for longer, it is told otherwise: long keys
   * do not end with the primary key, nor do those of a table that has been a partition. */
  void keep_parts(TABLE *table, uint key, size_t parts);

  /* The values of a key's columns, from those of a row. */
  void key_of_row(uint key, const pantile_value *row, std::vector<pantile_value> &values) const;

private:
  int add_keys(TABLE *table, std::string *why);
  bool has_key_with(uint field) const;
  std::vector<std::string> names_of(const Key_shape &key) const;
  std::set<std::string> names_for_keys() const;
  bool sort_key(TABLE *table, const Sort_column &column, const uchar *data, size_t length, std::vector<uchar> &to)
      const;
  bool sort_value(TABLE *table, const Sort_column &column, const uchar *record, Scratch &scratch, pantile_value *value)
      const;
};

/* The engine's column of a field: its name and type, and what a record has in it. */
std::string field_name(uint field);
pantile_type engine_type(const Field *field, const Stored_field &stored);
/* Whether a column of another type can hold the engine's values of a field as they are. */
bool holds_all_of(const Field *field, const Column_definition &type);
pantile_value value_in(const Field *field, const Stored_field &stored, const uchar *record);

/* Where a range begins or ends, at a key or behind or before it. `is_whole` is what encode_key has returned. */
pantile_bound from_key(const std::vector<pantile_value> &key, bool is_whole, bool includes);
pantile_bound to_key(const std::vector<pantile_value> &key, bool is_whole, bool includes);

/* The engine's column of the numbers of rows that have no primary key. */
extern const char *const ROW_NUMBER;

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* What every part of the handler includes. The server's headers come first, in this order. */
#ifndef PANTILE_COMMON_H
#define PANTILE_COMMON_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include "sql_class.h"
#include "sql_table.h"
#include "sql_lex.h"
#include "handler.h"
#include "key.h"
#include "field.h"
#include <mysql/plugin.h>

#include <pantile.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

extern handlerton *pantile_hton;
extern pantile_db *pantile_database;

/* In the name of a part of a table, between the table's own and the part's. */
static const char PART[]= "#P#";

#endif

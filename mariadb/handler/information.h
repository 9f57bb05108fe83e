/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of INFORMATION_SCHEMA: what the engine has and does, and who holds the garbage. They need the privilege PROCESS. */
#ifndef PANTILE_INFORMATION_H
#define PANTILE_INFORMATION_H

#include <mysql/plugin.h>

/* For the plugin's declaration. */
extern struct st_mysql_information_schema information_schema;
int start_tables_table(void *schema);
int start_indexes_table(void *schema);
int start_blocks_table(void *schema);
int start_collector_table(void *schema);
int start_transactions_table(void *schema);
int start_holders_table(void *schema);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the server is the one that the plugin was built for. The handler derives from the server's classes and reads
 * their fields, and these lie elsewhere in another version, or in a build for debugging. */
#include "version.h"
#include <mysql_version.h>

/* Not constants of the compiler, so that a test can change them in a copy of the plugin. */
static const volatile char built_for[]= "built for " MYSQL_SERVER_VERSION;

static std::string number_of(const std::string &version) { return version.substr(0, version.find_first_not_of("0123456789.")); }

bool fits_the_server()
{
  std::string expected;
  for (size_t n= strlen("built for "); built_for[n]; n++)
    expected+= built_for[n];
  const std::string found= server_version;
  const bool is_debugged= found.find("-debug") != std::string::npos;
  if (number_of(found) == number_of(expected) && !is_debugged)
    return true;
  if (using_custom_server_version && !is_debugged)
  {
    /* The server has compared its own version with that of the interface already. */
    sql_print_warning("Pantile: the option --version names %s, so the plugin, which was built for MariaDB %s, relies on "
                      "the check of the server's interface only",
                      found.c_str(), expected.c_str());
    return true;
  }
  sql_print_error("Pantile: this plugin was built for MariaDB %s, and this server is %s: objects of the server lie in "
                  "memory in another way there, so the engine is not started, and its tables cannot be used until a "
                  "plugin that was built for this version is installed; nothing was changed",
                  expected.c_str(), found.c_str());
  return false;
}

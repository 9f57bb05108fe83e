/* SPDX-License-Identifier: GPL-2.0-only */
/* What the engine warns of goes to the server's log, and what transactions hold that it has ended is freed, also where their
 * connections sleep. What was not possible is tried again. */
#ifndef PANTILE_WATCH_H
#define PANTILE_WATCH_H

namespace watch
{
  void start();
  void stop();
  /* There is something to try again (settle). */
  void look();
}

#endif

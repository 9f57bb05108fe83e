/* SPDX-License-Identifier: GPL-2.0-only */
#include "session.h"
#include "two_phases.h"
#include "watch.h"
#include "log.h"
#include <chrono>
#include <condition_variable>
#include <thread>

namespace
{
  std::mutex lock;
  std::condition_variable changed;
  bool has_news, is_over;
  std::thread watcher;

  void warn(const char *warning, void *)
  {
    sql_print_warning("Pantile: %s", warning);
    watch::look();
  }

  /* Frees what ended transactions hold whose connections are between two statements. Returns whether some are left: in the
   * middle of a statement, the next call of the engine fails, and the connection frees it itself. */
  bool free_ended()
  {
    pantile_transactions *list;
    if (pantile_transactions_list(pantile_database, &list) != PANTILE_OK)
      return false;
    bool is_left= false;
    for (size_t n= 0; n < pantile_transactions_len(list); n++)
    {
      pantile_running txn;
      pantile_transactions_get(list, n, &txn);
      if (txn.ended && txn.has_number && txn.name && !strcmp(txn.name, NAME_OF_CONNECTIONS))
        is_left|= !Session::free_ended(txn.number, txn.id, txn.ended);
    }
    pantile_transactions_free(list);
    return is_left;
  }

  void work()
  {
    std::unique_lock<std::mutex> alone(lock);
    bool is_left= false, is_settled= true;
    for (;;)
    {
      const auto wakes= [] { return has_news || is_over; };
      if (is_left || !is_settled)
        changed.wait_for(alone, std::chrono::milliseconds(is_left ? 200 : 1000), wakes);
      else
        changed.wait(alone, wakes);
      if (is_over)
        return;
      has_news= false;
      alone.unlock();
      is_left= free_ended();
      is_settled= settle();
      alone.lock();
    }
  }
}

void watch::start()
{
  has_news= is_over= false;
  watcher= std::thread(work);
  pantile_on_warnings(warn, nullptr);
}

void watch::look()
{
  std::lock_guard<std::mutex> alone(lock);
  has_news= true;
  changed.notify_one();
}

void watch::stop()
{
  pantile_on_warnings(nullptr, nullptr);
  {
    std::lock_guard<std::mutex> alone(lock);
    is_over= true;
    changed.notify_one();
  }
  if (watcher.joinable())
    watcher.join();
}

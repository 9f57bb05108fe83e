-- TPC-C through SQL, for sysbench 1.0: nine tables and five transactions, from the specification (revision 5.11).
--
--   sysbench tpcc.lua [OPTIONS] prepare   makes the tables and loads --warehouses; several threads share the warehouses
--   sysbench tpcc.lua [OPTIONS] run       runs the transactions
--   sysbench tpcc.lua [OPTIONS] check     checks the consistency conditions of clause 3.3.2; fails if one does not hold
--   sysbench tpcc.lua [OPTIONS] cleanup   drops the tables
--
-- As specified: the cardinalities and contents of tables (4.3.3), the mix (5.2.3) from a shuffled deck, NURand (2.1.6),
-- customers by last name in 60 of 100 Payments and Order-Statuses, one New-Order in 100 that is rolled back (2.4.1.4),
-- 1 of 100 lines and 15 of 100 Payments from another warehouse, where there is one.
--
-- Otherwise: no keying and think times, and a connection stands for all terminals of its warehouses; Delivery is done at
-- once (2.7.2 queues it), its ten districts in one transaction; no foreign keys; HISTORY has no key; the lines of an
-- order are in the order of their items. The rows that most transactions write (WAREHOUSE, DISTRICT) are written, or
-- locked, before anything is read, so that no snapshot is older than the lock. Texts have a binary collation, without
-- which MyRocks takes no key. Statements are sent as text: sysbench 1.0 has no results of prepared ones.
--
-- All transactions run at --isolation. One that ends with an error that sysbench ignores (1213, 1205, 1020) is rolled
-- back and tried again with the same inputs; it counts when it commits, or is rolled back as 2.4.1.4 asks. At its end
-- each thread prints how many transactions of each kind it has finished and the microseconds that they took together.

local ffi = require("ffi")

if sysbench.cmdline.command == nil then
   error("a command is needed: prepare, run, check or cleanup")
end

sysbench.cmdline.options = {
   warehouses = {"Warehouses to load", 1},
   scale = {"Size of a warehouse in percent: of its customers, orders and items", 100},
   isolation = {"Isolation of all transactions", "REPEATABLE READ"},
   mysql_storage_engine = {"Storage engine", "innodb"},
}

local DISTRICTS = 10
local KINDS = {"new_order", "payment", "order_status", "delivery", "stock_level"}
local MIX = {45, 43, 4, 4, 4}
-- Of NURand. The constants for last names of loading and running differ as 2.1.6.1 asks: by 65 to 119, not 96 or 112.
local C_LAST_LOAD, C_LAST_RUN, C_CUSTOMER, C_ITEM = 86, 171, 259, 4711

local uniform = sysbench.rand.uniform

-- Texts ---------------------------------------------------------------------------------------------------------------

local letter_templates, digit_templates = {}, {}
for length = 1, 500 do
   letter_templates[length] = string.rep("@", length)
   digit_templates[length] = string.rep("#", length)
end

local function letters(least, most)
   return sysbench.rand.string(letter_templates[uniform(least, most or least)])
end

local function digits(count)
   return sysbench.rand.string(digit_templates[count])
end

local SYLLABLES = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

local function last_name(number)
   return SYLLABLES[math.floor(number / 100) + 1] .. SYLLABLES[math.floor(number / 10) % 10 + 1] ..
      SYLLABLES[number % 10 + 1]
end

-- One text in ten contains ORIGINAL.
local function data()
   local text = letters(26, 50)
   if uniform(1, 10) > 1 then
      return text
   end
   local at = uniform(0, #text - 8)
   return text:sub(1, at) .. "ORIGINAL" .. text:sub(at + 9)
end

local function address()
   return string.format("'%s','%s','%s','%s','%s11111'", letters(10, 20), letters(10, 20), letters(10, 20),
      letters(2):upper(), digits(4))
end

local function nurand(a, c, low, high)
   return (bit.bor(uniform(0, a), uniform(low, high)) + c) % (high - low + 1) + low
end

local function shuffle(list)
   for last = #list, 2, -1 do
      local other = uniform(1, last)
      list[last], list[other] = list[other], list[last]
   end
   return list
end

-- Tables --------------------------------------------------------------------------------------------------------------

local TABLES = {
   {"warehouse", [[w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20),
      w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id)]]},
   {"district", [[d_w_id INT NOT NULL, d_id TINYINT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20),
      d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4),
      d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)]]},
   {"customer", [[c_w_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_id INT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2),
      c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2),
      c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2),
      c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt INT,
      c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id),
      KEY by_name (c_w_id, c_d_id, c_last, c_first)]]},
   {"history", [[h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT, h_w_id INT, h_date DATETIME,
      h_amount DECIMAL(6,2), h_data VARCHAR(24)]]},
   {"new_orders", [[no_w_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_o_id INT NOT NULL,
      PRIMARY KEY (no_w_id, no_d_id, no_o_id)]]},
   {"orders", [[o_w_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_id INT NOT NULL, o_c_id INT, o_entry_d DATETIME,
      o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id),
      KEY by_customer (o_w_id, o_d_id, o_c_id, o_id)]]},
   {"order_line", [[ol_w_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_o_id INT NOT NULL, ol_number TINYINT NOT NULL,
      ol_i_id INT, ol_supply_w_id INT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2),
      ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]]},
   {"item", [[i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50),
      PRIMARY KEY (i_id)]]},
   {"stock", [[s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity SMALLINT, s_dist_01 CHAR(24), s_dist_02 CHAR(24),
      s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), s_dist_07 CHAR(24),
      s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT,
      s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)]]},
   -- Not the specification's: a row for each warehouse that has been loaded, made last.
   {"loaded", [[l_w_id INT NOT NULL, l_items INT NOT NULL, l_customers INT NOT NULL, PRIMARY KEY (l_w_id)]]},
}

-- Loading -------------------------------------------------------------------------------------------------------------

-- fill(CONNECTION, TABLE, NUMBERS, ROW): inserts row(n) for each of so many numbers, many in one statement.
local function fill(con, name, count, row)
   con:bulk_insert_init("INSERT INTO " .. name .. " VALUES")
   for n = 1, count do
      con:bulk_insert_next(row(n))
   end
   con:bulk_insert_done()
end

local function load_items(con, items)
   fill(con, "item", items, function(i)
      return string.format("(%d,%d,'%s',%.2f,'%s')", i, uniform(1, 10000), letters(14, 24), uniform(100, 10000) / 100,
         data())
   end)
end

local function load_stock(con, w, items)
   fill(con, "stock", items, function(i)
      local places = letters(240):gsub(string.rep(".", 24), "'%0',")
      return string.format("(%d,%d,%d,%s0,0,0,'%s')", w, i, uniform(10, 100), places, data())
   end)
end

local function load_customers(con, w, d, customers, now)
   local names = math.min(customers, 1000)
   fill(con, "customer", customers, function(c)
      local number = c <= names and c - 1 or nurand(255, C_LAST_LOAD, 0, names - 1)
      return string.format("(%d,%d,%d,'%s','OE','%s',%s,'%s','%s','%s',50000,%.4f,-10,10,1,0,'%s')", w, d, c,
         letters(8, 16), last_name(number), address(), digits(16), now, uniform(1, 10) == 1 and "BC" or "GC",
         uniform(0, 5000) / 10000, letters(300, 500))
   end)
   fill(con, "history", customers, function(c)
      return string.format("(%d,%d,%d,%d,%d,'%s',10,'%s')", c, d, w, d, w, now, letters(12, 24))
   end)
end

local function load_orders(con, w, d, customers, items, now)
   local delivered = customers - math.floor(customers * 0.3)
   local of, lines, total = {}, {}, 0
   for c = 1, customers do
      of[c] = c
      lines[c] = uniform(5, 15)
      total = total + lines[c]
   end
   shuffle(of)
   fill(con, "orders", customers, function(o)
      return string.format("(%d,%d,%d,%d,'%s',%s,%d,1)", w, d, o, of[o], now, o <= delivered and uniform(1, 10) or "NULL",
         lines[o])
   end)
   fill(con, "new_orders", customers - delivered, function(n)
      return string.format("(%d,%d,%d)", w, d, delivered + n)
   end)
   local o, line = 1, 0
   fill(con, "order_line", total, function()
      line = line + 1
      if line > lines[o] then
         o, line = o + 1, 1
      end
      local is_delivered = o <= delivered
      return string.format("(%d,%d,%d,%d,%d,%d,%s,5,%.2f,'%s')", w, d, o, line, uniform(1, items), w,
         is_delivered and "'" .. now .. "'" or "NULL", is_delivered and 0 or uniform(1, 999999) / 100, letters(24))
   end)
end

local function load_warehouse(con, w, items, customers)
   local now = con:query_row("SELECT NOW()")
   local ytd = customers * 10
   con:query(string.format("INSERT INTO warehouse VALUES (%d,'%s',%s,%.4f,%d)", w, letters(6, 10), address(),
      uniform(0, 2000) / 10000, ytd * DISTRICTS))
   load_stock(con, w, items)
   for d = 1, DISTRICTS do
      con:query(string.format("INSERT INTO district VALUES (%d,%d,'%s',%s,%.4f,%d,%d)", w, d, letters(6, 10), address(),
         uniform(0, 2000) / 10000, ytd, customers + 1))
      load_customers(con, w, d, customers, now)
      load_orders(con, w, d, customers, items, now)
   end
   con:query(string.format("INSERT INTO loaded VALUES (%d,%d,%d)", w, items, customers))
end

-- Waits, for the other threads, until a query gives a number of at least so much.
local function await(con, query, least)
   for _ = 1, 36000 do
      if tonumber(con:query_row(query)) >= least then
         return
      end
      con:query_row("SELECT SLEEP(0.1)")
   end
   error("another thread has not come as far as: " .. query)
end

local function prepare()
   local con = sysbench.sql.driver():connect()
   local warehouses, scale = sysbench.opt.warehouses, sysbench.opt.scale
   assert(warehouses >= 1 and scale >= 1 and scale <= 100, "--warehouses is 1 or more, and --scale is 1 to 100")
   local items, customers = math.floor(1000 * scale), math.floor(30 * scale)
   if sysbench.tid == 0 then
      for _, definition in ipairs(TABLES) do
         con:query(string.format("CREATE TABLE %s (%s) ENGINE=%s CHARACTER SET latin1 COLLATE latin1_bin", definition[1],
            definition[2], sysbench.opt.mysql_storage_engine))
      end
      load_items(con, items)
   else
      await(con, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()", #TABLES)
   end
   for w = sysbench.tid + 1, warehouses, sysbench.opt.threads do
      load_warehouse(con, w, items, customers)
   end
   if sysbench.tid == 0 then
      await(con, "SELECT COUNT(*) FROM loaded", warehouses)
      for _, definition in ipairs(TABLES) do
         con:query_row("ANALYZE TABLE " .. definition[1])
      end
   end
end

-- Transactions --------------------------------------------------------------------------------------------------------

local con
-- What was loaded.
local warehouses, items, customers, names
-- The warehouses of this thread.
local homes
local now_us
local deck = {}
-- The transaction that has begun and not ended.
local pending
local counts, micros = {}, {}
local rolled_back, retries = 0, 0

local function row(query, ...)
   return con:query_row(string.format(query, ...))
end

local function must(query, ...)
   local first, second, third, fourth = row(query, ...)
   if first == nil then
      error("there is no row for: " .. string.format(query, ...))
   end
   return first, second, third, fourth
end

local function change(query, ...)
   con:query(string.format(query, ...))
end

local function another(w)
   local other = uniform(1, warehouses - 1)
   return other < w and other or other + 1
end

-- A customer, by name in 60 of 100.
local function draw_customer(input)
   if uniform(1, 100) <= 60 then
      input.name = last_name(nurand(255, C_LAST_RUN, 0, names - 1))
   else
      input.c = nurand(1023, C_CUSTOMER, 1, customers)
   end
end

-- The number of a customer: of those with a name, the one in the middle by first names. Neither ever changes.
local function customer_of(input, w, d)
   if input.c then
      return input.c
   end
   local result = con:query(string.format(
      "SELECT c_id FROM customer WHERE c_w_id=%d AND c_d_id=%d AND c_last='%s' ORDER BY c_first", w, d, input.name))
   local middle
   for _ = 1, math.ceil(result.nrows / 2) do
      middle = result:fetch_row()
   end
   assert(middle, "there is no customer of the name " .. input.name)
   return tonumber(middle[1])
end

local draw, attempt = {}, {}

function draw.new_order(input)
   input.c = nurand(1023, C_CUSTOMER, 1, customers)
   input.lines, input.all_local = {}, 1
   for n = 1, uniform(5, 15) do
      local line = {item = nurand(8191, C_ITEM, 1, items), supply = input.w, quantity = uniform(1, 10)}
      if warehouses > 1 and uniform(1, 100) == 1 then
         line.supply, input.all_local = another(input.w), 0
      end
      input.lines[n] = line
   end
   if uniform(1, 100) == 1 then
      input.lines[#input.lines].item = items + 1
   end
   table.sort(input.lines, function(a, b)
      return a.item < b.item or a.item == b.item and a.supply < b.supply
   end)
end

function attempt.new_order(input)
   local w, d = input.w, input.d
   local o, d_tax = must("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id=%d AND d_id=%d FOR UPDATE", w, d)
   change("UPDATE district SET d_next_o_id=%d WHERE d_w_id=%d AND d_id=%d", o + 1, w, d)
   local discount, _, _, w_tax = must(
      "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse " ..
      "WHERE w_id=%d AND c_w_id=w_id AND c_d_id=%d AND c_id=%d", w, d, input.c)
   change("INSERT INTO orders VALUES (%d,%d,%d,%d,NOW(),NULL,%d,%d)", w, d, o, input.c, #input.lines, input.all_local)
   change("INSERT INTO new_orders VALUES (%d,%d,%d)", w, d, o)
   local total = 0
   for n, line in ipairs(input.lines) do
      local price, _, i_data = row("SELECT i_price, i_name, i_data FROM item WHERE i_id=%d", line.item)
      if price == nil then
         con:query("ROLLBACK")
         return false
      end
      local quantity, s_data, place = must(
         "SELECT s_quantity, s_data, s_dist_%02d FROM stock WHERE s_w_id=%d AND s_i_id=%d FOR UPDATE", d, line.supply,
         line.item)
      line.brand = i_data:find("ORIGINAL", 1, true) and s_data:find("ORIGINAL", 1, true) and "B" or "G"
      local left = quantity - line.quantity
      change("UPDATE stock SET s_quantity=%d, s_ytd=s_ytd+%d, s_order_cnt=s_order_cnt+1, s_remote_cnt=s_remote_cnt+%d " ..
         "WHERE s_w_id=%d AND s_i_id=%d", left >= 10 and left or left + 91, line.quantity, line.supply == w and 0 or 1,
         line.supply, line.item)
      local amount = line.quantity * price
      total = total + amount
      change("INSERT INTO order_line VALUES (%d,%d,%d,%d,%d,%d,NULL,%d,%.2f,'%s')", w, d, o, n, line.item, line.supply,
         line.quantity, amount, place)
   end
   input.total = total * (1 - discount) * (1 + w_tax + d_tax)
   con:query("COMMIT")
   return true
end

function draw.payment(input)
   input.amount = uniform(100, 500000) / 100
   input.c_w, input.c_d = input.w, input.d
   if warehouses > 1 and uniform(1, 100) > 85 then
      input.c_w, input.c_d = another(input.w), uniform(1, DISTRICTS)
   end
   draw_customer(input)
end

function attempt.payment(input)
   local w, d, c_w, c_d, amount = input.w, input.d, input.c_w, input.c_d, input.amount
   change("UPDATE warehouse SET w_ytd=w_ytd+%.2f WHERE w_id=%d", amount, w)
   change("UPDATE district SET d_ytd=d_ytd+%.2f WHERE d_w_id=%d AND d_id=%d", amount, w, d)
   local w_name = must("SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id=%d", w)
   local d_name = must(
      "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id=%d AND d_id=%d", w, d)
   local c = customer_of(input, c_w, c_d)
   local credit = must(
      "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit_lim, " ..
      "c_discount, c_balance, c_since FROM customer WHERE c_w_id=%d AND c_d_id=%d AND c_id=%d FOR UPDATE", c_w, c_d, c)
   local of_bad_credit = ""
   if credit == "BC" then
      local old = must("SELECT c_data FROM customer WHERE c_w_id=%d AND c_d_id=%d AND c_id=%d", c_w, c_d, c)
      local new = string.format("%d %d %d %d %d %.2f|%s", c, c_d, c_w, d, w, amount, old):sub(1, 500)
      of_bad_credit = ", c_data='" .. new .. "'"
   end
   change("UPDATE customer SET c_balance=c_balance-%.2f, c_ytd_payment=c_ytd_payment+%.2f, " ..
      "c_payment_cnt=c_payment_cnt+1%s WHERE c_w_id=%d AND c_d_id=%d AND c_id=%d", amount, amount, of_bad_credit, c_w,
      c_d, c)
   change("INSERT INTO history VALUES (%d,%d,%d,%d,%d,NOW(),%.2f,'%s    %s')", c, c_d, c_w, d, w, amount, w_name, d_name)
   con:query("COMMIT")
   return true
end

draw.order_status = draw_customer

function attempt.order_status(input)
   local w, d = input.w, input.d
   local c = customer_of(input, w, d)
   must("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id=%d AND c_d_id=%d AND c_id=%d", w, d, c)
   local o = must("SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id=%d AND o_d_id=%d AND o_c_id=%d " ..
      "ORDER BY o_id DESC LIMIT 1", w, d, c)
   must("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line " ..
      "WHERE ol_w_id=%d AND ol_d_id=%d AND ol_o_id=%d", w, d, o)
   con:query("COMMIT")
   return true
end

function draw.delivery(input)
   input.carrier = uniform(1, 10)
end

function attempt.delivery(input)
   local w = input.w
   for d = 1, DISTRICTS do
      local o = row("SELECT no_o_id FROM new_orders WHERE no_w_id=%d AND no_d_id=%d ORDER BY no_o_id LIMIT 1 FOR UPDATE",
         w, d)
      -- A district may have no order that waits.
      if o then
         change("DELETE FROM new_orders WHERE no_w_id=%d AND no_d_id=%d AND no_o_id=%d", w, d, o)
         local c = must("SELECT o_c_id FROM orders WHERE o_w_id=%d AND o_d_id=%d AND o_id=%d FOR UPDATE", w, d, o)
         change("UPDATE orders SET o_carrier_id=%d WHERE o_w_id=%d AND o_d_id=%d AND o_id=%d", input.carrier, w, d, o)
         change("UPDATE order_line SET ol_delivery_d=NOW() WHERE ol_w_id=%d AND ol_d_id=%d AND ol_o_id=%d", w, d, o)
         local sum = must("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id=%d AND ol_d_id=%d AND ol_o_id=%d", w, d, o)
         change("UPDATE customer SET c_balance=c_balance+%s, c_delivery_cnt=c_delivery_cnt+1 " ..
            "WHERE c_w_id=%d AND c_d_id=%d AND c_id=%d", sum, w, d, c)
      end
   end
   con:query("COMMIT")
   return true
end

function draw.stock_level(input)
   input.threshold = uniform(10, 20)
end

function attempt.stock_level(input)
   local w, d = input.w, input.d
   local next_o = must("SELECT d_next_o_id FROM district WHERE d_w_id=%d AND d_id=%d", w, d)
   must("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id=%d AND ol_d_id=%d AND ol_o_id<%d AND " ..
      "ol_o_id>=%d AND s_w_id=%d AND s_i_id=ol_i_id AND s_quantity<%d", w, d, next_o, next_o - 20, w, input.threshold)
   con:query("COMMIT")
   return true
end

-- Running -------------------------------------------------------------------------------------------------------------

local function read_loaded(connection)
   local count, last, of_items, of_customers =
      connection:query_row("SELECT COUNT(*), MAX(l_w_id), MIN(l_items), MIN(l_customers) FROM loaded")
   assert(count == last and last ~= nil, "the warehouses are not complete: run cleanup and prepare")
   return tonumber(last), tonumber(of_items), tonumber(of_customers)
end

function thread_init()
   ffi.cdef [[
      typedef struct { long seconds, nanoseconds; } tpcc_time;
      int clock_gettime(int, tpcc_time *);
   ]]
   local time = ffi.new("tpcc_time")
   now_us = function()
      ffi.C.clock_gettime(1, time)
      return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) / 1e3
   end
   con = sysbench.sql.driver():connect()
   con:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. sysbench.opt.isolation:gsub("[-_]", " "))
   warehouses, items, customers = read_loaded(con)
   names = math.min(customers, 1000)
   homes = {}
   for w = sysbench.tid % warehouses + 1, warehouses, math.min(sysbench.opt.threads, warehouses) do
      homes[#homes + 1] = w
   end
   for _, kind in ipairs(KINDS) do
      counts[kind], micros[kind] = 0, 0
   end
end

local function draw_transaction()
   if #deck == 0 then
      for n, kind in ipairs(KINDS) do
         for _ = 1, MIX[n] do
            deck[#deck + 1] = kind
         end
      end
      shuffle(deck)
   end
   local input = {kind = table.remove(deck), w = homes[uniform(1, #homes)], d = uniform(1, DISTRICTS)}
   draw[input.kind](input)
   input.began = now_us()
   return input
end

function event()
   pending = pending or draw_transaction()
   con:query("BEGIN")
   if not attempt[pending.kind](pending) then
      rolled_back = rolled_back + 1
   end
   counts[pending.kind] = counts[pending.kind] + 1
   micros[pending.kind] = micros[pending.kind] + now_us() - pending.began
   pending = nil
end

-- Some errors end a statement only: without this, the next BEGIN would commit the rest.
function sysbench.hooks.before_restart_event()
   retries = retries + 1
   con:query("ROLLBACK")
end

function thread_done()
   local told = {}
   for _, kind in ipairs(KINDS) do
      told[#told + 1] = string.format("%s=%d/%.0f", kind, counts[kind], micros[kind])
   end
   print(string.format("tpcc: %s rolled_back=%d/0 retries=%d/0", table.concat(told, " "), rolled_back, retries))
   con:disconnect()
end

-- Consistency ---------------------------------------------------------------------------------------------------------

-- How many rows break each condition, in the order of clause 3.3.2. DELIVERED is how many orders of a district were
-- loaded as delivered. Conditions 2 and 11 are put so that they hold after any number of deliveries.
local CONDITIONS = {
   [[SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS ytd FROM district GROUP BY d_w_id) AS d
      ON d_w_id=w_id WHERE w_ytd<>COALESCE(ytd,0)]],
   [[SELECT COUNT(*) FROM district LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id)
      AS o ON o_w_id=d_w_id AND o_d_id=d_id LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_open FROM new_orders
      GROUP BY no_w_id, no_d_id) AS n ON no_w_id=d_w_id AND no_d_id=d_id
      WHERE d_next_o_id-1<>COALESCE(last,0) OR last_open<>d_next_o_id-1]],
   [[SELECT COUNT(*) FROM (SELECT MAX(no_o_id)-MIN(no_o_id)+1 AS span, COUNT(*) AS number FROM new_orders
      GROUP BY no_w_id, no_d_id) AS n WHERE span<>number]],
   [[SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected FROM orders GROUP BY o_w_id, o_d_id) AS o
      LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS number FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
      ON ol_w_id=o_w_id AND ol_d_id=o_d_id WHERE expected<>COALESCE(number,0)]],
   [[SELECT (SELECT COUNT(*) FROM orders LEFT JOIN new_orders ON no_w_id=o_w_id AND no_d_id=o_d_id AND no_o_id=o_id
      WHERE (o_carrier_id IS NULL)<>(no_o_id IS NOT NULL)) + (SELECT COUNT(*) FROM new_orders LEFT JOIN orders
      ON o_w_id=no_w_id AND o_d_id=no_d_id AND o_id=no_o_id WHERE o_id IS NULL)]],
   [[SELECT (SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS number FROM order_line
      GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l ON ol_w_id=o_w_id AND ol_d_id=o_d_id AND ol_o_id=o_id
      WHERE o_ol_cnt<>COALESCE(number,0)) + (SELECT COUNT(*) FROM order_line LEFT JOIN orders
      ON o_w_id=ol_w_id AND o_d_id=ol_d_id AND o_id=ol_o_id WHERE o_id IS NULL)]],
   [[SELECT COUNT(*) FROM order_line LEFT JOIN orders ON o_w_id=ol_w_id AND o_d_id=ol_d_id AND o_id=ol_o_id
      WHERE (ol_delivery_d IS NULL)<>(o_carrier_id IS NULL)]],
   [[SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS h
      ON h_w_id=w_id WHERE w_ytd<>COALESCE(paid,0)]],
   [[SELECT COUNT(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history
      GROUP BY h_w_id, h_d_id) AS h ON h_w_id=d_w_id AND h_d_id=d_id WHERE d_ytd<>COALESCE(paid,0)]],
   [[SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders,
      order_line WHERE ol_w_id=o_w_id AND ol_d_id=o_d_id AND ol_o_id=o_id AND ol_delivery_d IS NOT NULL
      GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id=c_w_id AND o_d_id=c_d_id AND o_c_id=c_id
      LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id)
      AS h ON h_c_w_id=c_w_id AND h_c_d_id=c_d_id AND h_c_id=c_id
      WHERE c_balance<>COALESCE(delivered,0)-COALESCE(paid,0)]],
   [[SELECT COUNT(*) FROM district JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS number FROM orders GROUP BY o_w_id, o_d_id) AS o
      ON o_w_id=d_w_id AND o_d_id=d_id LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waiting FROM new_orders
      GROUP BY no_w_id, no_d_id) AS n ON no_w_id=d_w_id AND no_d_id=d_id JOIN (SELECT c_w_id, c_d_id,
      SUM(c_delivery_cnt) AS since FROM customer GROUP BY c_w_id, c_d_id) AS c ON c_w_id=d_w_id AND c_d_id=d_id
      WHERE number-COALESCE(waiting,0)<>DELIVERED+since]],
   [[SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders,
      order_line WHERE ol_w_id=o_w_id AND ol_d_id=o_d_id AND ol_o_id=o_id AND ol_delivery_d IS NOT NULL
      GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id=c_w_id AND o_d_id=c_d_id AND o_c_id=c_id
      WHERE c_balance+c_ytd_payment<>COALESCE(delivered,0)]],
}

local function check()
   local connection = sysbench.sql.driver():connect()
   local all_warehouses, _, all_customers = read_loaded(connection)
   local delivered = all_customers - math.floor(all_customers * 0.3)
   connection:query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
   local broken = {}
   for n, query in ipairs(CONDITIONS) do
      local rows = tonumber((connection:query_row((query:gsub("DELIVERED", delivered)))))
      if rows ~= 0 then
         broken[#broken + 1] = string.format("condition %d does not hold for %d rows", n, rows)
      end
   end
   connection:query("COMMIT")
   if #broken > 0 then
      error(table.concat(broken, "; "))
   end
   print(string.format("tpcc: %d of %d conditions hold; warehouses: %d", #CONDITIONS, #CONDITIONS, all_warehouses))
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   for _, definition in ipairs(TABLES) do
      connection:query("DROP TABLE IF EXISTS " .. definition[1])
   end
end

sysbench.cmdline.commands = {
   prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check},
}

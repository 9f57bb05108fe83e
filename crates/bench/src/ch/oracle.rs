//! The queries once more, as slow and as plain as can be: every row of every
//! table in the order of the FROM clause, and the WHERE clause term by term.

use std::collections::{BTreeMap, BTreeSet};

use pantile::{Database, Range, Value};

use super::answer::{Answer, row};

trait Column {
    fn of(value: Value<'_>) -> Self;
}

impl Column for i64 {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Int(n) | Value::Timestamp(n) => n,
            Value::UInt(n) => n.try_into().unwrap(),
            other => panic!("{other:?} is no number"),
        }
    }
}

impl Column for Option<i64> {
    fn of(value: Value<'_>) -> Self {
        if value == Value::Null { None } else { Some(i64::of(value)) }
    }
}

impl Column for String {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Str(text) => text.to_owned(),
            other => panic!("{other:?} is no text"),
        }
    }
}

macro_rules! relations {
    ($($name:ident $table:literal $rows:ident { $($column:ident: $ty:ty),+ })+) => {
        $(struct $name { $($column: $ty),+ })+

        /// All rows of all tables.
        pub struct Relations { $($rows: Vec<$name>),+ }

        impl Relations {
            pub fn read(db: &Database) -> Self {
                let txn = db.begin_read().unwrap();
                Self {
                    $($rows: txn
                        .scan(&db.table($table).unwrap(), Range::all())
                        .unwrap()
                        .map(|row| {
                            let row = row.unwrap();
                            $name { $($column: <$ty>::of(row.get(stringify!($column)).unwrap())),+ }
                        })
                        .collect()),+
                }
            }
        }
    };
}

relations! {
    Customer "customer" customer {
        c_w_id: i64, c_d_id: i64, c_id: i64, c_last: String, c_state: String, c_phone: String, c_balance: i64
    }
    NewOrder "new_order" new_order { no_w_id: i64, no_d_id: i64, no_o_id: i64 }
    Order "order" order {
        o_w_id: i64, o_d_id: i64, o_id: i64, o_c_id: i64, o_entry_d: i64, o_carrier_id: Option<i64>, o_ol_cnt: i64
    }
    Line "order_line" order_line {
        ol_w_id: i64, ol_d_id: i64, ol_o_id: i64, ol_number: i64, ol_i_id: i64, ol_supply_w_id: i64,
        ol_delivery_d: Option<i64>, ol_quantity: i64, ol_amount: i64
    }
    Item "item" item { i_id: i64, i_name: String, i_price: i64, i_data: String }
    Stock "stock" stock { s_w_id: i64, s_i_id: i64, s_quantity: i64, s_order_cnt: i64 }
    Supplier "supplier" supplier {
        su_suppkey: i64, su_name: String, su_address: String, su_nationkey: i64, su_phone: String, su_comment: String
    }
    Nation "nation" nation { n_nationkey: i64, n_name: String, n_regionkey: i64 }
    Region "region" region { r_regionkey: i64, r_name: String }
}

const DAY: i64 = 86_400_000_000;
/// 1999-01-01, 2007-01-02 and 2100-01-01, in days since 1970.
const Y1999: i64 = 10_592 * DAY;
const Y2007: i64 = 13_515 * DAY;
const Y2100: i64 = 47_482 * DAY;

fn year(time: i64) -> i64 {
    let (mut year, mut days) = (1970, time / DAY);
    loop {
        let length = if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 };
        if days < length {
            return year;
        }
        (year, days) = (year + 1, days - length);
    }
}

impl Order {
    fn is_of(&self, c: &Customer) -> bool {
        self.o_w_id == c.c_w_id && self.o_d_id == c.c_d_id && self.o_c_id == c.c_id
    }
}

impl Line {
    fn is_of(&self, o: &Order) -> bool {
        self.ol_w_id == o.o_w_id && self.ol_d_id == o.o_d_id && self.ol_o_id == o.o_id
    }

    fn delivered(&self, from: i64, to: i64) -> bool {
        self.ol_delivery_d.is_some_and(|delivery| from <= delivery && delivery < to)
    }
}

impl Stock {
    fn supplier(&self) -> i64 {
        self.s_w_id * self.s_i_id % 10_000
    }
}

fn wanted_phone(c: &Customer) -> bool {
    "1234567".contains(c.c_phone.chars().next().unwrap())
}

impl Relations {
    /// The answer, in any order.
    pub fn answer(&self, query: &str) -> Answer {
        match query {
            "q1" => self.q1(),
            "q2" => self.q2(),
            "q3" => self.q3(),
            "q4" => self.q4(),
            "q5" => self.q5(),
            "q6" => self.q6(),
            "q9" => self.q9(),
            "q11" => self.q11(),
            "q12" => self.q12(),
            "q13" => self.q13(),
            "q14" => self.q14(),
            "q15" => self.q15(),
            "q16" => self.q16(),
            "q18" => self.q18(),
            "q19" => self.q19(),
            "q22" => self.q22(),
            other => panic!("{other} has no oracle"),
        }
    }

    /// The nation of the supplier of a stock, if there are both.
    fn nation_of(&self, s: &Stock) -> Option<(&Supplier, &Nation)> {
        let su = self.supplier.iter().find(|su| su.su_suppkey == s.supplier())?;
        Some((su, self.nation.iter().find(|n| n.n_nationkey == su.su_nationkey)?))
    }

    fn is_in(&self, n: &Nation, region: &str) -> bool {
        self.region.iter().any(|r| r.r_regionkey == n.n_regionkey && r.r_name == region)
    }

    fn q1(&self) -> Answer {
        let mut answer = Vec::new();
        for number in 1..=15 {
            let group: Vec<_> = self
                .order_line
                .iter()
                .filter(|ol| ol.ol_number == number && ol.ol_delivery_d.is_some_and(|d| d > Y2007))
                .collect();
            if group.is_empty() {
                continue;
            }
            let quantity: i64 = group.iter().map(|ol| ol.ol_quantity).sum();
            let amount: i64 = group.iter().map(|ol| ol.ol_amount).sum();
            let n = group.len() as f64;
            answer.push(row![
                number,
                quantity,
                amount,
                quantity as f64 / n,
                amount as f64 / n,
                group.len() as i64
            ]);
        }
        answer
    }

    fn q2(&self) -> Answer {
        let european = |s: &Stock| self.nation_of(s).filter(|(_, n)| self.is_in(n, "Europe"));
        let mut answer = Vec::new();
        for i in self.item.iter().filter(|i| i.i_data.ends_with('b')) {
            let of_item: Vec<_> = self.stock.iter().filter(|s| s.s_i_id == i.i_id).collect();
            let least = of_item.iter().filter(|s| european(s).is_some()).map(|s| s.s_quantity).min();
            for s in of_item {
                let Some((su, n)) = european(s) else { continue };
                if Some(s.s_quantity) == least {
                    let (name, nation) = (&*su.su_name, &*n.n_name);
                    let (address, phone, comment) = (&*su.su_address, &*su.su_phone, &*su.su_comment);
                    answer.push(row![
                        su.su_suppkey,
                        name,
                        nation,
                        i.i_id,
                        &*i.i_name,
                        address,
                        phone,
                        comment
                    ]);
                }
            }
        }
        answer
    }

    fn q3(&self) -> Answer {
        let mut answer = Vec::new();
        for c in self.customer.iter().filter(|c| c.c_state.starts_with('A')) {
            for no in &self.new_order {
                for o in self.order.iter().filter(|o| o.is_of(c) && o.o_entry_d > Y2007) {
                    if (no.no_w_id, no.no_d_id, no.no_o_id) != (o.o_w_id, o.o_d_id, o.o_id) {
                        continue;
                    }
                    let lines: Vec<_> = self.order_line.iter().filter(|ol| ol.is_of(o)).collect();
                    if !lines.is_empty() {
                        let revenue: i64 = lines.iter().map(|ol| ol.ol_amount).sum();
                        answer.push(row![o.o_id, o.o_w_id, o.o_d_id, revenue, o.o_entry_d]);
                    }
                }
            }
        }
        answer
    }

    fn q4(&self) -> Answer {
        let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
        for o in self.order.iter().filter(|o| Y2007 <= o.o_entry_d && o.o_entry_d < Y2100) {
            if self.order_line.iter().any(|ol| ol.is_of(o) && ol.delivered(o.o_entry_d, i64::MAX)) {
                *counts.entry(o.o_ol_cnt).or_default() += 1;
            }
        }
        counts.into_iter().map(|(lines, count)| row![lines, count]).collect()
    }

    fn q5(&self) -> Answer {
        let mut revenue: BTreeMap<&str, i64> = BTreeMap::new();
        for c in &self.customer {
            for o in self.order.iter().filter(|o| o.is_of(c) && o.o_entry_d >= Y2007) {
                for ol in self.order_line.iter().filter(|ol| ol.is_of(o)) {
                    for s in self.stock.iter().filter(|s| s.s_w_id == ol.ol_w_id && s.s_i_id == ol.ol_i_id) {
                        let Some((su, n)) = self.nation_of(s) else { continue };
                        let state = i64::from(c.c_state.as_bytes()[0]);
                        if state == su.su_nationkey && self.is_in(n, "Europe") {
                            *revenue.entry(&n.n_name).or_default() += ol.ol_amount;
                        }
                    }
                }
            }
        }
        revenue.into_iter().map(|(nation, revenue)| row![nation, revenue]).collect()
    }

    fn q6(&self) -> Answer {
        let wanted = self
            .order_line
            .iter()
            .filter(|ol| ol.delivered(Y1999, Y2100) && ol.ol_quantity >= 1 && ol.ol_quantity <= 100_000);
        vec![row![wanted.map(|ol| ol.ol_amount).sum::<i64>()]]
    }

    fn q9(&self) -> Answer {
        let mut profits: BTreeMap<(&str, i64), i64> = BTreeMap::new();
        for i in self.item.iter().filter(|i| i.i_data.ends_with("BB")) {
            for s in self.stock.iter().filter(|s| s.s_i_id == i.i_id) {
                let Some((_, n)) = self.nation_of(s) else { continue };
                let sold = |ol: &&Line| ol.ol_i_id == s.s_i_id && ol.ol_supply_w_id == s.s_w_id;
                for ol in self.order_line.iter().filter(sold) {
                    for o in self.order.iter().filter(|o| ol.is_of(o)) {
                        *profits.entry((&n.n_name, year(o.o_entry_d))).or_default() += ol.ol_amount;
                    }
                }
            }
        }
        profits.into_iter().map(|((nation, year), profit)| row![nation, year, profit]).collect()
    }

    fn q11(&self) -> Answer {
        let is_german = |s: &&Stock| self.nation_of(s).is_some_and(|(_, n)| n.n_name == "Germany");
        let german: Vec<_> = self.stock.iter().filter(is_german).collect();
        let all: i64 = german.iter().map(|s| s.s_order_cnt).sum();
        let items: BTreeSet<i64> = german.iter().map(|s| s.s_i_id).collect();
        let mut answer = Vec::new();
        for item in items {
            let count: i64 = german.iter().filter(|s| s.s_i_id == item).map(|s| s.s_order_cnt).sum();
            if count as f64 > all as f64 * 0.005 {
                answer.push(row![item, count]);
            }
        }
        answer
    }

    fn q12(&self) -> Answer {
        let mut counts: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for o in &self.order {
            for _ in self.order_line.iter().filter(|ol| ol.is_of(o) && ol.delivered(o.o_entry_d, Y2100)) {
                let (high, low) = counts.entry(o.o_ol_cnt).or_default();
                match o.o_carrier_id {
                    Some(1 | 2) => *high += 1,
                    Some(_) => *low += 1,
                    None => {}
                }
            }
        }
        counts.into_iter().map(|(lines, (high, low))| row![lines, high, low]).collect()
    }

    fn q13(&self) -> Answer {
        let ids: BTreeSet<i64> = self.customer.iter().map(|c| c.c_id).collect();
        let mut spread: BTreeMap<i64, i64> = BTreeMap::new();
        for id in ids {
            let mut count = 0;
            for c in self.customer.iter().filter(|c| c.c_id == id) {
                let counted = |o: &&Order| o.is_of(c) && o.o_carrier_id.is_some_and(|carrier| carrier > 8);
                count += self.order.iter().filter(counted).count() as i64;
            }
            *spread.entry(count).or_default() += 1;
        }
        spread.into_iter().map(|(count, customers)| row![count, customers]).collect()
    }

    fn q14(&self) -> Answer {
        let (mut promoted, mut all) = (0, 0);
        for ol in self.order_line.iter().filter(|ol| ol.delivered(Y2007, Y2100)) {
            for i in self.item.iter().filter(|i| i.i_id == ol.ol_i_id) {
                all += ol.ol_amount;
                promoted += if i.i_data.starts_with("PR") { ol.ol_amount } else { 0 };
            }
        }
        vec![row![100.0 * promoted as f64 / (100 + all) as f64]]
    }

    fn q15(&self) -> Answer {
        let mut revenue: BTreeMap<i64, i64> = BTreeMap::new();
        for ol in self.order_line.iter().filter(|ol| ol.delivered(Y2007, i64::MAX)) {
            for s in self.stock.iter().filter(|s| s.s_i_id == ol.ol_i_id && s.s_w_id == ol.ol_supply_w_id) {
                *revenue.entry(s.supplier()).or_default() += ol.ol_amount;
            }
        }
        let most = *revenue.values().max().unwrap();
        let best = |su: &&Supplier| revenue.get(&su.su_suppkey) == Some(&most);
        let suppliers = self.supplier.iter().filter(best);
        suppliers.map(|su| row![su.su_suppkey, &*su.su_name, &*su.su_address, &*su.su_phone, most]).collect()
    }

    fn q16(&self) -> Answer {
        let mut groups: BTreeMap<(&str, &str, i64), BTreeSet<i64>> = BTreeMap::new();
        for s in &self.stock {
            let is_bad = |su: &Supplier| su.su_suppkey == s.supplier() && su.su_comment.contains("bad");
            if self.supplier.iter().any(is_bad) {
                continue;
            }
            for i in self.item.iter().filter(|i| i.i_id == s.s_i_id && !i.i_data.starts_with("zz")) {
                groups.entry((&i.i_name, &i.i_data[..3], i.i_price)).or_default().insert(s.supplier());
            }
        }
        let groups = groups.into_iter();
        groups.map(|((name, brand, price), s)| row![name, brand, price, s.len() as i64]).collect()
    }

    fn q18(&self) -> Answer {
        let mut answer = Vec::new();
        for c in &self.customer {
            for o in self.order.iter().filter(|o| o.is_of(c)) {
                let amount: i64 =
                    self.order_line.iter().filter(|ol| ol.is_of(o)).map(|ol| ol.ol_amount).sum();
                if amount > 20_000 {
                    answer.push(row![&*c.c_last, c.c_id, o.o_id, o.o_entry_d, o.o_ol_cnt, amount]);
                }
            }
        }
        answer
    }

    fn q19(&self) -> Answer {
        let mut revenue = 0;
        for ol in &self.order_line {
            for i in self.item.iter().filter(|i| i.i_id == ol.ol_i_id) {
                let priced = i.i_price >= 100 && i.i_price <= 40_000_000;
                let few = ol.ol_quantity >= 1 && ol.ol_quantity <= 10;
                let w = ol.ol_w_id;
                let of_a = i.i_data.ends_with('a') && [1, 2, 3].contains(&w);
                let of_b = i.i_data.ends_with('b') && [1, 2, 4].contains(&w);
                let of_c = i.i_data.ends_with('c') && [1, 5, 3].contains(&w);
                if priced && few && (of_a || of_b || of_c) {
                    revenue += ol.ol_amount;
                }
            }
        }
        vec![row![revenue]]
    }

    fn q22(&self) -> Answer {
        let rich: Vec<_> = self.customer.iter().filter(|c| c.c_balance > 0 && wanted_phone(c)).collect();
        let mean = rich.iter().map(|c| c.c_balance).sum::<i64>() as f64 / rich.len() as f64;
        let mut groups: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for c in self.customer.iter().filter(|c| wanted_phone(c) && c.c_balance as f64 > mean) {
            if !self.order.iter().any(|o| o.is_of(c)) {
                let (count, sum) = groups.entry(&c.c_state[..1]).or_default();
                *count += 1;
                *sum += c.c_balance;
            }
        }
        groups.into_iter().map(|(state, (count, sum))| row![state, count, sum]).collect()
    }
}

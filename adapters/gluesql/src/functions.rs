//! Functions that users define. A session reads them when a transaction begins, as GlueSQL borrows them from it.

use std::collections::BTreeMap;

use gluesql_core::data::CustomFunction as Function;
use gluesql_core::error::Result;
use gluesql_core::store::{CustomFunction, CustomFunctionMut};
use pantile::{Range, Transaction};

use crate::PantileStorage;
use crate::failed::Outcome;
use crate::tables::{Tables, unpacked};

pub fn load(tables: &Tables, txn: &Transaction) -> Outcome<BTreeMap<String, Function>> {
    let mut functions = BTreeMap::new();
    for row in txn.scan(&tables.functions, Range::all())? {
        let row = row?;
        functions.insert(row.get("name")?, unpacked(&row, 1)?);
    }
    Ok(functions)
}

impl CustomFunction for PantileStorage {
    fn fetch_function<'a>(&'a self, func_name: &str) -> Result<Option<&'a Function>> {
        Ok(self.functions.get(&func_name.to_uppercase()))
    }

    fn fetch_all_functions(&self) -> Result<Vec<&Function>> {
        Ok(self.functions.values().collect())
    }
}

impl CustomFunctionMut for PantileStorage {
    fn insert_function(&mut self, func: Function) -> Result<()> {
        let name = func.func_name.to_uppercase();
        self.write(|tables, txn| {
            let packed = postcard::to_stdvec(&func)?;
            Ok(txn.upsert(&tables.functions, &[name.as_str().into(), packed.as_slice().into()])?)
        })?;
        self.functions.insert(name, func);
        Ok(())
    }

    fn delete_function(&mut self, func_name: &str) -> Result<()> {
        let name = func_name.to_uppercase();
        self.write(|tables, txn| Ok(txn.delete(&tables.functions, &[name.as_str().into()])?))?;
        self.functions.remove(&name);
        Ok(())
    }
}

//! GlueSQL's own suite of tests for storages.

use gluesql_core::prelude::Glue;
use gluesql_test_suite::*;
use pantile::{MediumKind, Options};
use pantile_gluesql::PantileStorage;

struct Session(Glue<PantileStorage>);

impl Tester<PantileStorage> for Session {
    fn new(_: &str) -> Self {
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
        Self(Glue::new(PantileStorage::new(db).expect("a session")))
    }

    fn get_glue(&mut self) -> &mut Glue<PantileStorage> {
        &mut self.0
    }
}

generate_store_tests!(test, Session);
generate_alter_table_tests!(test, Session);
generate_alter_table_index_tests!(test, Session);
generate_index_tests!(test, Session);
generate_transaction_tests!(test, Session);
generate_transaction_alter_table_tests!(test, Session);
generate_transaction_index_tests!(test, Session);
generate_metadata_table_tests!(test, Session);
generate_metadata_index_tests!(test, Session);
generate_custom_function_tests!(test, Session);

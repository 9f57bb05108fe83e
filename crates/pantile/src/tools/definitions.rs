//! The table definitions in the catalog of a closed database.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_store::Content;

use crate::engine::{catalog, pieces};
use crate::types::encoding::Encoded;
use crate::types::history::Definition;
use crate::types::schema::TableDef;

/// The newest version of a row of the catalog: its timestamp, and the row
/// unless it is deleted.
type Newest = (Timestamp, Option<Vec<u8>>);

/// Collects the definitions of tables from contents of the catalog.
#[derive(Default)]
pub(crate) struct Definitions {
    /// By tuple.
    rows: Mutex<HashMap<u64, Newest, FixedState>>,
}

impl Definitions {
    pub fn note<'c>(&self, table: TableId, contents: impl Iterator<Item = Content<'c>>) {
        if table != catalog::CATALOG {
            return;
        }
        for content in contents {
            let row = (!content.flags().is_tombstone()).then(|| content.row().to_vec());
            self.add(content.tuple().0, (content.timestamp(), row));
        }
    }

    /// Adds those of another store.
    pub fn join(&self, other: Self) {
        other.rows.into_inner().into_iter().for_each(|(tuple, row)| self.add(tuple, row));
    }

    fn add(&self, tuple: u64, row: Newest) {
        let mut rows = self.rows.lock();
        let newest = rows.entry(tuple).or_insert((Timestamp::ZERO, None));
        if newest.0 < row.0 {
            *newest = row;
        }
    }

    /// Those that can be read, by id, and those of the engine's own tables.
    pub fn tables(&self) -> BTreeMap<u32, TableDef> {
        let mut tables = BTreeMap::from([(catalog::CATALOG.0, catalog::definition())]);
        let schema = catalog::schema();
        for (_, row) in self.rows.lock().values() {
            let Some(bytes) = row else { continue };
            let row = Encoded { schema: &schema, bytes };
            if row.shape_problem().is_some() {
                continue;
            }
            let id = catalog::table_of(&row);
            if let Ok(definition) = catalog::decode(row.raw(&schema.columns[1])) {
                let has_pieces = definition.can_move_out();
                let Definition { def, .. } = definition;
                if catalog::is_of_user(id) && has_pieces {
                    let pieces = pieces::definition(&pieces::listed_name(&def.name));
                    tables.insert(pieces::of(id).0, pieces);
                }
                tables.insert(id.0, def);
            }
        }
        tables
    }
}

//! Places in an index from which a later range goes on.

/// A place in an index, behind which a later range can begin.
///
/// A cursor [returns](crate::Cursor::position) it, and a range of any transaction
/// [begins](crate::Range::behind) behind it. So a program can read a table page by page over any
/// index, and needs no column that distinguishes rows with the same key.
///
/// Rows with the same key of an index keep their order. From page to page, every row whose key
/// stays the same is found exactly once. The row at the position may have been changed or deleted.
///
/// A position is valid for any index of the table with the same columns, as long as the table and
/// these columns keep their names, their types, and whether they take NULL.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U8).primary_key(["id"]);
/// # let t = db.create_table(def.index(IndexDef::new("by_n", ["n"])))?;
/// # db.run(|txn| txn.insert_many(&t, (0..10u64).map(|id| [id.into(), 7u8.into()])))?;
/// let by_n = t.index("by_n")?;
/// let mut position: Option<Position> = None;
/// let mut pages = Vec::new();
/// loop {
///     let txn = db.begin_read()?;
///     let page = Range::all().limit(4);
///     let page = position.as_ref().map_or(page, |position| page.behind(position));
///     let (mut cursor, mut ids) = (txn.index_cursor(&by_n, page)?, Vec::new());
///     while let Some(row) = cursor.next(&txn)? {
///         ids.push(row.get::<u64>("id")?);
///     }
///     match cursor.position() {
///         Some(last) => position = Some(last),
///         None => break,
///     }
///     pages.push(ids.len());
/// }
/// assert_eq!(pages, [4, 4, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// Identifies the table and the key of the index.
    pub(crate) order: u64,
    /// The key of the row's entry.
    pub(crate) key: Vec<u64>,
}

impl Position {
    /// Converts the position to bytes, for a caller that will ask for the next page.
    ///
    /// The bytes hold the key. They can be used after the database has been opened again.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 8 * self.key.len());
        bytes.extend(self.order.to_be_bytes());
        self.key.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        bytes
    }

    /// Converts bytes to a position. Returns `None` if they are not one; bytes that were changed
    /// may be some other position.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (order, rest) = bytes.split_first_chunk()?;
        let (words, []) = rest.as_chunks() else { return None };
        let key: Vec<_> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        (!key.is_empty()).then(|| Self { order: u64::from_be_bytes(*order), key })
    }
}

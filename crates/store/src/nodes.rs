//! NUMA nodes: what a thread appends goes to memory of its own node (Zen+ 4.2, "NUMA-local write").
//!
//! Each stream belongs to a node, and so does each chunk. A thread takes a stream of the node that
//! it runs on, and a stream opens blocks of its node. If there is only one node, or the medium
//! knows of none, none of this applies.
//!
//! This is a preference only. Blocks of other nodes are taken if the own node has no space, by
//! copies that are packed towards the front of the medium, and by state records. Collectors that
//! reuse single slots take them on any node.

use std::sync::Arc;

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::Mutex;
use pantile_base::{Address, Padded};
use pantile_media::Nodes;

use crate::block::BlockId;
use crate::stream::Stream;

/// The nodes that the medium knows of.
#[derive(Debug)]
pub(crate) struct NodeMap(pub Option<Arc<dyn Nodes>>);

impl NodeMap {
    /// The node of the calling thread, if there are several.
    #[inline]
    pub fn here(&self) -> Option<usize> {
        self.0.as_ref().map(|nodes| nodes.here())
    }

    /// The node of a content, if there are several.
    pub fn of(&self, address: Address) -> Option<usize> {
        let chunk = (address.offset() / CHUNK_BYTES) as u32;
        self.0.as_ref().map(|nodes| nodes.of_chunk(chunk))
    }

    /// Whether a chunk may serve this node.
    pub fn is_near(&self, chunk: u32, node: Option<usize>) -> bool {
        self.0.as_ref().is_none_or(|nodes| node.is_none_or(|node| nodes.of_chunk(chunk) == node))
    }

    /// The last of these blocks that may serve a node.
    pub fn take_near(&self, blocks: &mut Vec<BlockId>, node: Option<usize>) -> Option<BlockId> {
        let at = blocks.iter().rposition(|id| self.is_near(id.chunk, node))?;
        Some(blocks.remove(at))
    }

    /// As many streams or more, and as many for each node.
    pub fn share(&self, streams: usize) -> usize {
        streams.next_multiple_of(self.0.as_ref().map_or(1, |nodes| nodes.count()))
    }

    /// The streams of a node.
    #[inline]
    pub fn streams_of<'s>(
        &self,
        streams: &'s [Padded<Mutex<Stream>>],
        node: Option<usize>,
    ) -> &'s [Padded<Mutex<Stream>>] {
        match (&self.0, node) {
            (Some(nodes), Some(node)) => {
                let each = streams.len() / nodes.count();
                &streams[node * each..][..each]
            }
            _ => streams,
        }
    }
}

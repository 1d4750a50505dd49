//! The tree of an instance, a page at a time: depth first, each node before its children, those newest first.
//!
//! A page costs what it shows and the depth of the tree, however large the tree is: a cursor is the last node of the
//! page before, and its way up to the root says where the walk goes on.

use super::{Client, Instance, manage::page_rows};
use crate::error::{Code, Error};
use crate::store::{ErrorKind, InstanceCursor, InstanceInfo, InstanceQuery};

/// Deepest node of a tree that is walked, in generations below the root.
pub const MAX_TREE_DEPTH: usize = 1_000;

/// Children that one read asks for, unless the page needs fewer.
const CHILDREN_AT_ONCE: usize = 100;

/// Which part of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeQuery {
    /// The root.
    pub instance: String,
    /// Continue after this node: the last of the page before.
    pub after: Option<String>,
    /// At most this many; 0 is the default of 100, the most is [`MAX_PAGE_ROWS`](crate::limits::MAX_PAGE_ROWS).
    pub limit: usize,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// Generations below the root; 0 is the root itself.
    pub depth: usize,
    /// The instance.
    pub instance: Instance,
}

/// A part of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreePage {
    /// The nodes, each before its children.
    pub nodes: Vec<TreeNode>,
    /// After which node the next page begins; `None` when this is the last.
    pub next: Option<String>,
}

/// Children of one instance that are still to be shown.
struct Brood {
    parent: String,
    /// The last one that was read.
    after: Option<InstanceCursor>,
    /// Read and not shown, in reverse.
    ready: Vec<InstanceInfo>,
    is_read: bool,
}

impl Brood {
    fn of(parent: &str, after: Option<InstanceCursor>) -> Self {
        Brood { parent: parent.to_owned(), after, ready: Vec::new(), is_read: false }
    }

    async fn next(&mut self, client: &Client, most: usize) -> Result<Option<InstanceInfo>, Error> {
        if self.ready.is_empty() && !self.is_read {
            let query = InstanceQuery {
                parent_instance_id: Some(self.parent.clone()),
                cursor: self.after.take(),
                limit: most.clamp(1, CHILDREN_AT_ONCE),
                ..InstanceQuery::default()
            };
            let page = client.store().query_instances(query).await?;
            // One that cannot be read has no state to show; the tree without it would not be true.
            if let Some(row) = page.unreadable.first() {
                let message =
                    format!("the row of child {:?} cannot be read: {}", row.instance_id, row.reason);
                return Err(Error::new(Code::StoredDataUnreadable, message));
            }
            self.ready = page.instances;
            self.ready.reverse();
            self.is_read = page.next.is_none();
            self.after = page.next;
        }
        Ok(self.ready.pop())
    }
}

impl Client {
    /// A page of an instance and its descendants, each before its children, children newest first.
    ///
    /// # Errors
    /// `not-found` when there is no such instance; `invalid-option` when the limit is too high, or the cursor is no node of
    /// this tree (any more).
    pub async fn tree_page(&self, query: TreeQuery) -> Result<TreePage, Error> {
        let limit = page_rows(query.limit)?;
        let root = self.store().get_instance_info(&query.instance).await?;
        let mut nodes = Vec::new();
        let mut broods = match &query.after {
            Some(after) => self.way_to(&root, after).await?,
            None => {
                let brood = Brood::of(&root.instance_id, None);
                nodes.push(TreeNode { depth: 0, instance: Instance::from_info(root) });
                vec![brood]
            }
        };
        // One more than asked for tells whether another page follows.
        while nodes.len() <= limit {
            let depth = broods.len();
            let Some(brood) = broods.last_mut() else { break };
            let Some(child) = brood.next(self, limit + 1 - nodes.len()).await? else {
                broods.pop();
                continue;
            };
            if depth < MAX_TREE_DEPTH {
                broods.push(Brood::of(&child.instance_id, None));
            }
            nodes.push(TreeNode { depth, instance: Instance::from_info(child) });
        }
        let is_more = nodes.len() > limit;
        nodes.truncate(limit);
        let next = nodes.last().filter(|_| is_more).map(|last| last.instance.id.clone());
        Ok(TreePage { nodes, next })
    }

    /// What is left of the tree behind a node: its children, and the younger siblings of it and of all above it.
    async fn way_to(&self, root: &InstanceInfo, node: &str) -> Result<Vec<Brood>, Error> {
        let mut broods = vec![Brood::of(node, None)];
        let mut below = node.to_owned();
        while below != root.instance_id {
            let info = match self.store().get_instance_info(&below).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(not_in_tree(node)),
                info => info?,
            };
            let Some(parent) = info.parent_instance_id.filter(|_| broods.len() <= MAX_TREE_DEPTH) else {
                return Err(not_in_tree(node));
            };
            let place = InstanceCursor { created_at_ms: info.created_at_ms, instance_id: info.instance_id };
            broods.push(Brood::of(&parent, Some(place)));
            below = parent;
        }
        broods.reverse();
        Ok(broods)
    }
}

fn not_in_tree(node: &str) -> Error {
    let message =
        format!("the cursor {node:?} is no node of this tree, or not any more; read the tree from its root");
    Error::new(Code::InvalidOption, message)
}

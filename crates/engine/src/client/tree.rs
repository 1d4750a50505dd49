//! The tree of an instance, a page at a time: depth first, each node before its children, those newest first.
//!
//! A page costs what it shows and the depth of the tree, however large the tree is: a cursor is the
//! last node of the page before, and its path to the root is where the walk continues. A node
//! whose row cannot be read does not tell its parent, so it is no cursor: it is named beside the
//! others, and what is below it is not shown.

use std::cmp::Reverse;

use super::{Client, Instance, manage::page_rows};
use crate::error::{Code, Error};
use crate::store::{ErrorKind, InstanceCursor, InstanceInfo, InstanceQuery, UnreadableInstance};

/// Deepest node of a tree that is walked, in generations below the root.
pub const MAX_TREE_DEPTH: usize = 1_000;

/// Children of one read, unless the page needs fewer.
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
    /// Children that cannot be read, in the order of the walk.
    pub unreadable: Vec<UnreadableNode>,
    /// After which node the next page begins; `None` when this is the last.
    pub next: Option<String>,
}

/// A child that cannot be read, with what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableNode {
    /// The last node before it that can be read.
    pub after: String,
    /// The child; `None` for children whose ids cannot be read either.
    pub id: Option<String>,
    /// Why it cannot be read, without stored data and without a path or address of the machine.
    pub reason: String,
}

/// A child as a read found it.
enum Child {
    Readable(Box<InstanceInfo>),
    Unreadable(UnreadableInstance),
    /// Children that even the index does not name.
    Missing(String),
}

impl Child {
    /// The order of children: newest first.
    fn place(&self) -> (Reverse<u64>, &str) {
        match self {
            Child::Readable(info) => (Reverse(info.created_at_ms), &info.instance_id),
            Child::Unreadable(row) => (Reverse(row.created_at_ms), &row.instance_id),
            Child::Missing(_) => (Reverse(0), ""),
        }
    }
}

/// Children of one instance that are still to be shown.
struct Brood {
    parent: String,
    /// The last one that was read.
    after: Option<InstanceCursor>,
    /// Read and not shown, in reverse.
    ready: Vec<Child>,
    is_read: bool,
}

impl Brood {
    fn of(parent: &str, after: Option<InstanceCursor>) -> Self {
        Brood { parent: parent.to_owned(), after, ready: Vec::new(), is_read: false }
    }

    async fn next(&mut self, client: &Client, most: usize) -> Result<Option<Child>, Error> {
        if self.ready.is_empty() && !self.is_read {
            let query = InstanceQuery {
                parent_instance_id: Some(self.parent.clone()),
                cursor: self.after.take(),
                limit: most.clamp(1, CHILDREN_AT_ONCE),
                ..InstanceQuery::default()
            };
            let page = client.store().query_instances(query).await?;
            self.ready = page.instances.into_iter().map(|info| Child::Readable(Box::new(info))).collect();
            self.ready.extend(page.unreadable.into_iter().map(Child::Unreadable));
            self.ready.extend(page.damaged.map(Child::Missing));
            self.ready.sort_by(|one, other| other.place().cmp(&one.place()));
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
        let (mut nodes, mut unreadable) = (Vec::new(), Vec::<(usize, UnreadableNode)>::new());
        let mut last_id = query.after.clone().unwrap_or_else(|| root.instance_id.clone());
        let mut broods = match &query.after {
            Some(after) => self.way_to(&root, after).await?,
            None => {
                let brood = Brood::of(&root.instance_id, None);
                nodes.push(TreeNode { depth: 0, instance: Instance::from_info(root) });
                vec![brood]
            }
        };
        // One more than requested shows whether another page follows.
        while nodes.len() <= limit {
            let depth = broods.len();
            let Some(brood) = broods.last_mut() else { break };
            let Some(child) = brood.next(self, limit + 1 - nodes.len()).await? else {
                broods.pop();
                continue;
            };
            let (id, reason) = match child {
                Child::Readable(child) => {
                    if depth < MAX_TREE_DEPTH {
                        broods.push(Brood::of(&child.instance_id, None));
                    }
                    last_id.clone_from(&child.instance_id);
                    nodes.push(TreeNode { depth, instance: Instance::from_info(*child) });
                    continue;
                }
                Child::Unreadable(row) => (Some(row.instance_id), row.reason),
                Child::Missing(reason) => (None, reason),
            };
            unreadable.push((nodes.len(), UnreadableNode { after: last_id.clone(), id, reason }));
        }
        let is_more = nodes.len() > limit;
        nodes.truncate(limit);
        let next = nodes.last().filter(|_| is_more).map(|last| last.instance.id.clone());
        // Those behind the last node of the page are met again by the next.
        unreadable.retain(|(before, _)| !is_more || *before < limit);
        let unreadable = unreadable.into_iter().map(|(_, node)| node).collect();
        Ok(TreePage { nodes, unreadable, next })
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

//! Admission control for functions that this node runs itself, so that a tenant with slow functions does
//! not take the places of others. The engine fetches what it lets through.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use segno::runtime::{ActivityAdmission, ActivityPlace, AdmittedFetch};
use segno_actions::functions::{Tag, node_prefix};

use super::places::{Places, Shares};

/// One of so many places is reserved for tenants that have nothing under way.
const RESERVED_PART: usize = 8;

/// The places of functions that this node runs.
pub struct NodePlaces {
    places: Places,
    prefixes: BTreeSet<String>,
}

impl NodePlaces {
    /// So many places, for calls without a tag and for those with one of these.
    pub fn new(places: usize, tags: &BTreeSet<String>) -> Self {
        let reserved = places / RESERVED_PART;
        let shares = Shares { places, of_a_function: None, of_a_scope: places - reserved, reserved };
        let tags: Vec<Tag> = tags.iter().filter_map(|tag| Tag::new(tag.as_str()).ok()).collect();
        let prefixes = std::iter::once(None).chain(tags.iter().map(Some)).map(node_prefix).collect();
        NodePlaces { places: Places::new(shares), prefixes }
    }
}

impl ActivityAdmission for NodePlaces {
    fn admit(&self) -> BoxFuture<'_, AdmittedFetch> {
        Box::pin(async {
            let admission = self.places.admit().await;
            AdmittedFetch {
                max_items: admission.most,
                tags: admission.left_out.filter(&self.prefixes),
                changed: admission.changed,
            }
        })
    }

    fn take(&self, tag: &str) -> ActivityPlace {
        Box::new(self.places.take(tag))
    }
}

//! One lane per routing tag, so that a fetch with a tag filter reads the heads of the lanes that it
//! may take from.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::store::{TagFilter, TagPrefixes};

/// A lane for untagged work and one for each tag in use.
#[derive(Debug, Default)]
pub(super) struct TagLanes<L> {
    untagged: L,
    tagged: BTreeMap<Arc<str>, L>,
}

impl<L: Default> TagLanes<L> {
    /// The lane of a tag, created if needed.
    pub(super) fn lane_mut(&mut self, tag: Option<&Arc<str>>) -> &mut L {
        match tag {
            None => &mut self.untagged,
            Some(tag) => self.tagged.entry(Arc::clone(tag)).or_default(),
        }
    }

    /// Drops the lane of a tag that is not in use any more.
    pub(super) fn drop_lane(&mut self, tag: Option<&Arc<str>>) {
        match tag {
            None => self.untagged = L::default(),
            Some(tag) => drop(self.tagged.remove(tag)),
        }
    }

    /// The lanes that pass the filter. The cost grows with the tags of the filter or with the tags in
    /// use, whichever are fewer, and for `Any` and prefixes with the tags in use that match; never
    /// with the work in the lanes.
    pub(super) fn matching<'a>(&'a self, filter: &'a TagFilter) -> impl Iterator<Item = &'a L> {
        let untagged = filter.matches(None).then_some(&self.untagged);
        let named = match filter {
            TagFilter::Tags(tags) | TagFilter::DefaultAnd(tags) => Some(tags),
            TagFilter::DefaultOnly | TagFilter::Prefixes(_) | TagFilter::Any | TagFilter::None => None,
        };
        let (few, many) = match named {
            Some(tags) if tags.len() > self.tagged.len() => (None, Some(tags)),
            named => (named, None),
        };
        let few = few.into_iter().flatten().filter_map(|tag| self.tagged.get(tag.as_str()));
        let many = many.into_iter().flat_map(|tags| {
            self.tagged.iter().filter(|(tag, _)| tags.contains(&***tag)).map(|(_, lane)| lane)
        });
        let every = matches!(filter, TagFilter::Any).then_some(&self.tagged);
        let prefixed = match filter {
            TagFilter::Prefixes(prefixes) => Some(self.beginning(prefixes)),
            _ => None,
        };
        let every = every.into_iter().flat_map(BTreeMap::values);
        untagged.into_iter().chain(few).chain(many).chain(prefixed.into_iter().flatten()).chain(every)
    }

    /// The lanes of tags that begin with a prefix, each once.
    fn beginning<'a>(&'a self, wanted: &'a TagPrefixes) -> impl Iterator<Item = &'a L> {
        let is_within = |shorter: &str, longer: &str| shorter != longer && longer.starts_with(shorter);
        let all = &wanted.prefixes;
        let widest = all.iter().filter(move |prefix| !all.iter().any(|other| is_within(other, prefix)));
        widest.flat_map(|prefix| {
            let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
            let lanes =
                self.tagged.range::<str, _>(from).take_while(|(tag, _)| tag.starts_with(prefix.as_str()));
            lanes.filter(|(tag, _)| !wanted.leaves_out(tag)).map(|(_, lane)| lane)
        })
    }

    /// All lanes with their tags.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&Arc<str>>, &L)> {
        let tagged = self.tagged.iter().map(|(tag, lane)| (Some(tag), lane));
        std::iter::once((None, &self.untagged)).chain(tagged)
    }
}

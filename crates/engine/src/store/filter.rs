//! Filters that a fetch passes to a store: tags, sessions, and what the runtime can replay.

use std::collections::BTreeSet;
use std::time::Duration;

use semver::Version;

use crate::limits::MAX_WORKER_TAGS;

/// Which activities a worker takes, by routing tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TagFilter {
    /// Only activities without a tag.
    #[default]
    DefaultOnly,
    /// Only activities with one of these tags.
    Tags(BTreeSet<String>),
    /// Activities without a tag and those with one of these tags.
    DefaultAnd(BTreeSet<String>),
    /// Activities whose tag begins with one of some prefixes, but for some tags and longer prefixes.
    Prefixes(TagPrefixes),
    /// Every activity.
    Any,
    /// No activity: the node runs orchestrations only.
    None,
}

/// Tags by how they begin: for a worker that serves tags which it cannot know beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TagPrefixes {
    /// How a tag may begin.
    pub prefixes: BTreeSet<String>,
    /// Tags that are left out, whatever they begin with.
    pub except: BTreeSet<String>,
    /// Tags that begin with one of these are left out as well.
    pub except_prefixes: BTreeSet<String>,
}

impl TagPrefixes {
    /// Whether an activity with this tag passes.
    pub fn matches(&self, tag: &str) -> bool {
        begins_with_one_of(tag, &self.prefixes) && !self.leaves_out(tag)
    }

    /// Whether a tag is left out, whatever it begins with.
    pub fn leaves_out(&self, tag: &str) -> bool {
        self.except.contains(tag) || begins_with_one_of(tag, &self.except_prefixes)
    }
}

fn begins_with_one_of(tag: &str, prefixes: &BTreeSet<String>) -> bool {
    prefixes.iter().any(|prefix| tag.starts_with(prefix.as_str()))
}

impl TagFilter {
    /// A filter for these tags only.
    ///
    /// # Panics
    /// When there are no tags or more than [`MAX_WORKER_TAGS`].
    pub fn tags<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        TagFilter::Tags(checked_tags(tags.into_iter().map(Into::into).collect()))
    }

    /// A filter for untagged work and these tags.
    ///
    /// # Panics
    /// When there are no tags or more than [`MAX_WORKER_TAGS`].
    pub fn default_and<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        TagFilter::DefaultAnd(checked_tags(tags.into_iter().map(Into::into).collect()))
    }

    /// Whether an activity with this tag passes.
    pub fn matches(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (TagFilter::Any, _) => true,
            (TagFilter::None, _) => false,
            (TagFilter::DefaultOnly, tag) => tag.is_none(),
            (TagFilter::Tags(_) | TagFilter::Prefixes(_), None) => false,
            (TagFilter::Prefixes(prefixes), Some(tag)) => prefixes.matches(tag),
            (TagFilter::DefaultAnd(_), None) => true,
            (TagFilter::Tags(set) | TagFilter::DefaultAnd(set), Some(tag)) => set.contains(tag),
        }
    }
}

#[track_caller]
fn checked_tags(tags: BTreeSet<String>) -> BTreeSet<String> {
    assert!(!tags.is_empty(), "a tag filter requires at least one tag; use DefaultOnly, Any or None instead");
    assert!(
        tags.len() <= MAX_WORKER_TAGS,
        "a worker can subscribe to at most {MAX_WORKER_TAGS} tags, got {}",
        tags.len()
    );
    tags
}

/// Whether a fetch may claim free sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionClaims {
    /// Take items of owned and of free sessions; a free one becomes ours.
    #[default]
    Allowed,
    /// Take items of sessions that we own already, no new ones.
    OwnedOnly,
}

/// How a worker fetch treats session-bound work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFetchConfig {
    /// Who owns the sessions: all slots with the same id count as one owner.
    pub owner_id: String,
    /// How long a newly claimed session is held.
    pub lock_timeout: Duration,
    /// Whether free sessions may be claimed.
    pub claims: SessionClaims,
}

/// An inclusive range of engine versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemverRange {
    /// Lowest version in the range.
    pub min: Version,
    /// Highest version in the range.
    pub max: Version,
}

impl SemverRange {
    /// Whether `version` lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        (&self.min..=&self.max).contains(&version)
    }
}

/// Which executions a runtime can replay, by the engine version that each is pinned to.
/// An execution without a pin passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatcherCapabilityFilter {
    /// An execution passes when its version lies in one of these.
    pub supported_versions: Vec<SemverRange>,
}

impl DispatcherCapabilityFilter {
    /// Everything from the first version to this build: replay stays able to read what older builds wrote.
    pub fn for_current_build() -> Self {
        let range = SemverRange { min: Version::new(0, 0, 0), max: engine_version() };
        DispatcherCapabilityFilter { supported_versions: vec![range] }
    }

    /// Whether an execution pinned to `version` passes.
    pub fn is_compatible(&self, version: Option<&Version>) -> bool {
        version.is_none_or(|version| self.supported_versions.iter().any(|range| range.contains(version)))
    }
}

/// The version of the engine in this build.
pub(crate) const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of the engine in this build; new executions are pinned to it.
pub fn engine_version() -> Version {
    Version::parse(ENGINE_VERSION).expect("cargo only accepts semver package versions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filter_matches_the_tags_it_names() {
        let gpu = || TagFilter::tags(["gpu"]);
        let gpu_or_none = || TagFilter::default_and(["gpu"]);
        for (filter, untagged, gpu_tag, other) in [
            (TagFilter::DefaultOnly, true, false, false),
            (TagFilter::default(), true, false, false),
            (gpu(), false, true, false),
            (gpu_or_none(), true, true, false),
            (TagFilter::Any, true, true, true),
            (TagFilter::None, false, false, false),
        ] {
            assert_eq!(filter.matches(None), untagged, "{filter:?} untagged");
            assert_eq!(filter.matches(Some("gpu")), gpu_tag, "{filter:?} gpu");
            assert_eq!(filter.matches(Some("cpu")), other, "{filter:?} cpu");
        }
    }

    #[test]
    fn prefixes_match_what_begins_with_one_of_them_and_is_not_left_out() {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let filter = TagFilter::Prefixes(TagPrefixes {
            prefixes: set(&["push:", "other/"]),
            except: set(&["push:b", "unknown"]),
            except_prefixes: set(&["push:c/", "z"]),
        });
        let tags = [
            "push:a", "push:", "push:bb", "other/x", "push:b", "push:c", "push:c/", "push:c/a", "unknown",
            "pus", "Push:a", "",
        ];
        let matched: Vec<&str> = tags.into_iter().filter(|tag| filter.matches(Some(tag))).collect();
        assert_eq!(matched, ["push:a", "push:", "push:bb", "other/x", "push:c"]);
        assert!(!filter.matches(None));
    }

    #[test]
    #[should_panic(expected = "at most 5 tags")]
    fn six_tags_are_refused() {
        TagFilter::tags(["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    #[should_panic(expected = "requires at least one tag")]
    fn an_empty_tag_set_is_refused() {
        TagFilter::default_and(Vec::<String>::new());
    }

    #[test]
    fn the_default_capability_is_everything_up_to_this_build() {
        let filter = DispatcherCapabilityFilter::for_current_build();
        assert!(filter.is_compatible(None));
        assert!(filter.is_compatible(Some(&engine_version())));
        assert!(!filter.is_compatible(Some(&Version::new(999, 0, 0))));
    }
}

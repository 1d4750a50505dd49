//! "Did you mean": the known names that are nearest to one that is not known.

/// Most names that are suggested.
const MAX_SUGGESTED: usize = 2;

/// Longer names are compared by their first characters only: comparing takes time in the square of
/// the length.
const MAX_COMPARED_CHARS: usize = 64;

/// `did you mean "a" or "b"?`, if a known name is near to this one.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let near = nearest(name, known);
    let quoted: Vec<String> = near.iter().map(|name| format!("{name:?}")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// The nearest names first. A third of the characters may differ; letter case, `-` and `_` do not
/// count.
fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = comparable(name);
    if wanted.is_empty() {
        return Vec::new();
    }
    let most = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&wanted, &comparable(known)), known))
        .filter(|(distance, known)| *distance <= most && *distance < comparable(known).chars().count())
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MAX_SUGGESTED).map(|(_, name)| name).collect()
}

fn comparable(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_' | ' ')).take(MAX_COMPARED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["undo-user", "on_failure", "offset", "id"];
        for (name, near) in [
            ("undo-usr", &["undo-user"][..]),
            ("onFailure", &["on_failure"]),
            ("ofset", &["offset"]),
            ("of", &[]),
            ("", &[]),
            ("x", &[]),
            ("something else", &[]),
        ] {
            assert_eq!(nearest(name, known), near, "{name}");
        }
        assert_eq!(did_you_mean("Undo_User", known).as_deref(), Some("did you mean \"undo-user\"?"));
    }
}

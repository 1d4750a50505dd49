//! The formats of what is printed.

use clap::ValueEnum;

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[value(alias = "text")]
    Table,
    /// One JSON object.
    Json,
    /// JSON, one item per line.
    Jsonl,
    /// YAML.
    Yaml,
}

impl Format {
    /// Whether programs read it.
    pub fn is_for_programs(self) -> bool {
        self != Format::Table
    }

    /// The format that arguments ask for which could not be parsed as a whole.
    pub fn of_unparsed(arguments: &[String]) -> Self {
        let mut format = Format::Table;
        for (place, argument) in arguments.iter().enumerate() {
            let value = match argument.as_str() {
                "--" => break,
                "-o" | "--output" => arguments.get(place + 1).map(String::as_str),
                argument => argument.strip_prefix("--output=").or_else(|| {
                    let value = argument.strip_prefix("-o")?;
                    Some(value.strip_prefix('=').unwrap_or(value))
                }),
            };
            if let Some(named) = value.and_then(|value| <Format as ValueEnum>::from_str(value, false).ok()) {
                format = named;
            }
        }
        format
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_arguments_that_are_wrong_is_known() {
        for (arguments, format) in [
            ("list --nonsense", Format::Table),
            ("list --nonsense -o json", Format::Json),
            ("-ojsonl list --nonsense", Format::Jsonl),
            ("list --output=yaml --nonsense", Format::Yaml),
            ("list --output text --nonsense", Format::Table),
            ("list --nonsense -o xml", Format::Table),
            ("invoke echo -- -o json", Format::Table),
        ] {
            let words: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            assert_eq!(Format::of_unparsed(&words), format, "{arguments}");
        }
    }
}

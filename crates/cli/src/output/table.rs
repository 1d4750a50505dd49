//! Aligned text: lines of a name and a value, and rows under headings.

use super::colours::{Colours, in_one_line};

/// What is between two columns.
const GAP: &str = "  ";

/// The names of lines and columns whose values are states, and have colours.
const STATES: &[&str] = &["status", "outcome", "decision"];

/// Lines of a name and a value, in sections.
#[derive(Debug, Default)]
pub struct Table {
    sections: Vec<(String, Vec<(String, String)>)>,
}

impl Table {
    /// A new section; its name is empty for the first one.
    pub fn section(mut self, name: &str) -> Self {
        self.sections.push((name.to_owned(), Vec::new()));
        self
    }

    /// A line of the last section.
    pub fn line(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if self.sections.is_empty() {
            self.sections.push((String::new(), Vec::new()));
        }
        if let Some((_, lines)) = self.sections.last_mut() {
            lines.push((in_one_line(&name.into()).into_owned(), value.into()));
        }
        self
    }

    /// As people read it.
    pub fn to_text(&self, colours: Colours) -> String {
        let names = self.sections.iter().flat_map(|(_, lines)| lines).map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for (name, lines) in self.sections.iter().filter(|(_, lines)| !lines.is_empty()) {
            if !name.is_empty() {
                text.push_str(&format!("\n{}\n", colours.heading(name)));
            }
            for (name, value) in lines {
                let gap = " ".repeat(width - name.chars().count());
                let mut before = format!("{GAP}{name}{gap}{GAP}");
                // Further lines of a value are below its first one: none looks like a line of the table.
                for part in value.split('\n') {
                    let part = in_one_line(part);
                    let part = if is_state(name) { colours.state(&part) } else { part.into_owned() };
                    text.push_str(format!("{before}{part}").trim_end_matches(' '));
                    text.push('\n');
                    before = " ".repeat(2 * GAP.len() + width);
                }
            }
        }
        text
    }
}

/// Rows under headings, aligned.
#[derive(Debug)]
pub struct Rows {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// No rows yet, with these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Rows { headings: headings.iter().map(|heading| heading.to_uppercase()).collect(), rows: Vec::new() }
    }

    /// No rows yet, under names that are printed as they are.
    pub fn named(names: Vec<String>) -> Self {
        let headings = names.iter().map(|name| in_one_line(name).into_owned()).collect();
        Rows { headings, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are headings.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| in_one_line(cell).into_owned()).collect());
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| in_one_line(&cell).into_owned()).into());
    }

    /// As people read it.
    pub fn to_text(&self, colours: Colours) -> String {
        let all = || std::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let line = |row: &[String], painted: &dyn Fn(usize, &str) -> String| {
            let mut line = String::new();
            // Spaces that nothing follows are left out.
            let mut gap = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if !cell.is_empty() {
                    line.push_str(&gap);
                    line.push_str(&painted(column, cell));
                    gap.clear();
                }
                gap.push_str(&" ".repeat(width - cell.chars().count() + GAP.len()));
            }
            line.push('\n');
            line
        };
        let mut text = line(&self.headings, &|_, heading| colours.heading(heading));
        for row in &self.rows {
            text.push_str(&line(row, &|column, cell| match is_state(&self.headings[column]) {
                true => colours.state(cell),
                false => cell.to_owned(),
            }));
        }
        text
    }
}

fn is_state(name: &str) -> bool {
    STATES.iter().any(|state| state.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::colours::without_controls;
    use super::*;

    fn cells<const N: usize>(cells: [&str; N]) -> [String; N] {
        cells.map(str::to_owned)
    }

    #[test]
    fn rows_are_aligned() {
        let mut rows = Rows::new(["id", "status", "note"]);
        rows.add(cells(["a-long-one", "ok", ""]));
        rows.add(cells(["b", "", "späť"]));
        let text = "ID          STATUS  NOTE\na-long-one  ok\nb                   späť\n";
        assert_eq!(rows.to_text(Colours::Plain), text);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut rows = Rows::new(["status", "id"]);
        rows.add(cells(["failed", "failed"]));
        let plain = "STATUS  ID\nfailed  failed\n";
        let coloured = without_controls(&rows.to_text(Colours::Ansi)).into_owned();
        assert!(coloured.contains("\x1b[31mfailed\x1b[0m  failed\n"), "{coloured:?}");
        let stripped = coloured.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "");
        assert_eq!((stripped.as_str(), rows.to_text(Colours::Plain).as_str()), (plain, plain));
    }

    #[test]
    fn texts_of_others_are_no_colours_no_lines_and_no_columns() {
        let reason = "red \u{1b}[31mdead\n  state  active\tnow";
        let table = Table::default().line("state", reason);
        let shown = "  state  red \\u{1b}[31mdead\n           state  active\\tnow\n";
        assert_eq!(table.to_text(Colours::Plain), shown);
        let mut rows = Rows::new(["name", "id"]);
        rows.add(cells(["pay\u{200b}\u{202e}", "1"]));
        assert_eq!(rows.to_text(Colours::Plain), "NAME                 ID\npay\\u{200b}\\u{202e}  1\n");
        let mut rows = Rows::new(["id", "status"]);
        rows.add(cells([reason, "failed\u{1b}[2J\nok"]));
        let shown = without_controls(&rows.to_text(Colours::Ansi)).into_owned();
        assert_eq!((shown.lines().count(), shown.contains("\u{1b}[2J")), (2, false), "{shown:?}");
        assert!(shown.contains("red \\u{1b}[31mdead\\n  state  active\\tnow  \u{1b}[31mfailed"), "{shown:?}");
    }

    #[test]
    fn lines_are_aligned() {
        let table = Table::default().line("a", "1").section("more").line("longer", "2").section("empty");
        assert_eq!(table.to_text(Colours::Plain), "  a       1\n\nmore\n  longer  2\n");
        assert_eq!(Table::default().line("none", "").to_text(Colours::Plain), "  none\n");
    }
}

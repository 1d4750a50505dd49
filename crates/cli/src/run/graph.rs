//! The graph of a DAG as text, one line for each task, with the edges as rails on the left. Pure: tasks and edges come in,
//! lines go out.
//!
//! A rail leads to the downstream task that it waits for, and all edges to one task share a rail, as in the graph of
//! `git log`. A graph that needs more than [`MAX_RAILS`] rails is drawn without them: the lines of its tasks are in order all
//! the same.

use std::collections::HashMap;

/// Most rails side by side.
const MAX_RAILS: usize = 16;

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The rails, and the sign of the task.
    pub rails: String,
    /// The place of its task; none on lines between tasks.
    pub node: Option<usize>,
}

/// Draws tasks, each with its key and the keys of the tasks that come first. `sign` is what stands for a task.
pub fn draw(tasks: &[(&str, &[String])], sign: impl Fn(usize) -> char) -> Vec<Line> {
    let (order, downstream) = sorted(tasks);
    let plain =
        || order.iter().map(|node| Line { rails: sign(*node).to_string(), node: Some(*node) }).collect();
    let mut lines = Vec::new();
    let mut rails: Vec<Option<usize>> = Vec::new();
    for node in &order {
        let at = match rails.iter().position(|rail| *rail == Some(*node)) {
            Some(at) => at,
            None => free(&mut rails, 0),
        };
        rails[at] = Some(*node);
        lines.push(Line { rails: node_line(&rails, at, sign(*node)), node: Some(*node) });
        rails[at] = None;
        let before = rails.clone();
        let mut ends = Vec::new();
        for target in &downstream[*node] {
            let end = match rails.iter().position(|rail| *rail == Some(*target)) {
                Some(end) => end,
                None => free(&mut rails, at),
            };
            rails[end] = Some(*target);
            ends.push(end);
        }
        if rails.len() > MAX_RAILS {
            return plain();
        }
        if ends.iter().any(|end| *end != at) {
            lines.push(Line { rails: turn_line(&before, at, &ends), node: None });
        }
        while rails.last().is_some_and(Option::is_none) {
            rails.pop();
        }
    }
    lines
}

/// The first free rail from one on, or a new one.
fn free(rails: &mut Vec<Option<usize>>, from: usize) -> usize {
    match (from..rails.len()).find(|place| rails[*place].is_none()) {
        Some(place) => place,
        None => {
            rails.push(None);
            rails.len() - 1
        }
    }
}

/// Tasks with upstream before downstream and branches together, and the downstream tasks of each. Tasks of a cycle, which no
/// server accepts, are left out of the order.
fn sorted(tasks: &[(&str, &[String])]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let places: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(place, (key, _))| (*key, place)).collect();
    let mut downstream = vec![Vec::new(); tasks.len()];
    let mut open = vec![0_usize; tasks.len()];
    for (place, (_, upstream)) in tasks.iter().enumerate() {
        for upstream in upstream.iter().filter_map(|key| places.get(key.as_str())) {
            downstream[*upstream].push(place);
            open[place] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..tasks.len()).rev().filter(|place| open[*place] == 0).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(node) = ready.pop() {
        order.push(node);
        for target in downstream[node].iter().rev() {
            open[*target] -= 1;
            if open[*target] == 0 {
                ready.push(*target);
            }
        }
    }
    (order, downstream)
}

fn node_line(rails: &[Option<usize>], at: usize, sign: char) -> String {
    let cells = rails.iter().enumerate().map(|(place, rail)| match rail {
        _ if place == at => sign,
        Some(_) => '│',
        None => ' ',
    });
    let cells: Vec<String> = cells.map(String::from).collect();
    cells.join(" ").trim_end().to_owned()
}

/// The line below a task, on which its rail turns to those of its downstream tasks.
fn turn_line(before: &[Option<usize>], at: usize, ends: &[usize]) -> String {
    let (first, last) = ends.iter().fold((at, at), |(first, last), end| (first.min(*end), last.max(*end)));
    let width = before.len().max(last + 1);
    let mut line = String::new();
    for place in 0..width {
        let goes_on = before.get(place).is_some_and(Option::is_some);
        let is_end = ends.contains(&place);
        let mut sides = 0;
        if place == at || goes_on {
            sides |= UP;
        }
        if is_end || goes_on {
            sides |= DOWN;
        }
        let joins = place == at || is_end;
        let is_between = place > first && place < last;
        if (joins || (is_between && !goes_on)) && place > first {
            sides |= LEFT;
        }
        if (joins || (is_between && !goes_on)) && place < last {
            sides |= RIGHT;
        }
        line.push(corner(sides));
        line.push(if place >= first && place < last { '─' } else { ' ' });
    }
    line.trim_end().to_owned()
}

fn corner(sides: u8) -> char {
    const UP_DOWN: u8 = UP | DOWN;
    match (sides & UP_DOWN, sides & LEFT != 0, sides & RIGHT != 0) {
        (UP_DOWN, false, false) => '│',
        (UP_DOWN, false, true) => '├',
        (UP_DOWN, true, false) => '┤',
        (UP_DOWN, true, true) => '┼',
        (UP, true, true) => '┴',
        (UP, false, true) => '╰',
        (UP, true, false) => '╯',
        (DOWN, true, true) => '┬',
        (DOWN, false, true) => '╭',
        (DOWN, true, false) => '╮',
        (0, true, true) => '─',
        (UP | DOWN, _, _) => '│',
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drawing of tasks that are written as `key:upstream,upstream`.
    fn drawn(tasks: &[&str]) -> String {
        let tasks: Vec<(&str, Vec<String>)> = tasks
            .iter()
            .map(|task| {
                let (key, upstream) = task.split_once(':').unwrap_or((task, ""));
                (key, upstream.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect())
            })
            .collect();
        let tasks: Vec<_> = tasks.iter().map(|(key, upstream)| (*key, upstream.as_slice())).collect();
        let lines = draw(&tasks, |_| 'o').into_iter().map(|line| match line.node {
            Some(node) => format!("{} {}\n", line.rails, tasks[node].0),
            None => format!("{}\n", line.rails),
        });
        lines.collect()
    }

    #[test]
    fn chains_need_one_rail_and_diamonds_two() {
        for (tasks, wanted) in [
            (vec!["a", "b:a", "c:b"], "o a\no b\no c\n"),
            (vec!["a", "b"], "o a\no b\n"),
            (vec!["a", "b:a", "c:a", "d:b,c"], "o a\n├─╮\no │ b\n│ o c\n├─╯\no d\n"),
            (vec!["a", "b", "c:a,b"], "o a\n│ o b\n├─╯\no c\n"),
            // An edge that passes a task.
            (vec!["a", "b:a", "c:a,b"], "o a\n├─╮\no │ b\n╰─┤\n  o c\n"),
            (
                vec!["a", "b:a", "c:a", "d:a", "e:b,c,d"],
                "o a\n├─┬─╮\no │ │ b\n│ o │ c\n├─╯ │\n│   o d\n├───╯\no e\n",
            ),
        ] {
            assert_eq!(drawn(&tasks), wanted, "{tasks:?}");
        }
    }

    #[test]
    fn a_wide_graph_is_drawn_without_rails() {
        let names: Vec<String> = (0..MAX_RAILS).map(|number| format!("t{number}:a")).collect();
        let tasks: Vec<&str> = std::iter::once("a").chain(names.iter().map(String::as_str)).collect();
        assert!(drawn(&tasks).contains('┬'));
        let names: Vec<String> = (0..=MAX_RAILS).map(|number| format!("t{number}:a")).collect();
        let tasks: Vec<&str> = std::iter::once("a").chain(names.iter().map(String::as_str)).collect();
        let text = drawn(&tasks);
        assert!(text.starts_with("o a\no t0\no t1\n"), "{text}");
        assert_eq!(text.lines().count(), tasks.len());
    }

    #[test]
    fn every_task_has_one_line_in_an_order_that_respects_all_edges() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..500 {
            let count = random.usize(1..12);
            let upstream: Vec<Vec<String>> = (0..count)
                .map(|task| (0..task).filter(|_| random.u8(..4) == 0).map(|key| key.to_string()).collect())
                .collect();
            let keys: Vec<String> = (0..count).map(|key| key.to_string()).collect();
            let tasks: Vec<(&str, &[String])> = keys
                .iter()
                .zip(&upstream)
                .map(|(key, upstream)| (key.as_str(), upstream.as_slice()))
                .collect();
            let order: Vec<usize> = draw(&tasks, |_| 'o').iter().filter_map(|line| line.node).collect();
            assert_eq!(order.len(), count, "round {round}");
            let place = |task: &usize| order.iter().position(|node| node == task).unwrap();
            for (task, upstream) in upstream.iter().enumerate() {
                for key in upstream {
                    assert!(place(&key.parse().unwrap()) < place(&task), "round {round}: {tasks:?}");
                }
            }
        }
    }
}

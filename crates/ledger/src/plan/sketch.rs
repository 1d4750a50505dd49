//! A graph drawn with lines for a terminal: one row for each task, in topological order, and one lane for each open edge.

use super::graph::Graph;

/// Most lanes of a drawing; a wider one is harder to read than a list.
const MAX_LANES: usize = 24;

/// The rows of a drawing. A row with a task has it.
pub type Drawing = Vec<(String, Option<usize>)>;

/// Draws a graph; nothing if it is too wide.
pub fn draw(graph: &Graph) -> Option<Drawing> {
    let mut places = vec![0; graph.order().len()];
    graph.order().iter().enumerate().for_each(|(place, &task)| places[task] = place);
    // For each lane the task that its edge leads to.
    let mut lanes: Vec<Option<usize>> = Vec::new();
    let mut rows = Vec::new();
    for &task in graph.order() {
        let incoming: Vec<usize> = (0..lanes.len()).filter(|&lane| lanes[lane] == Some(task)).collect();
        let own = incoming.first().copied().unwrap_or_else(|| free_lane(&mut lanes, 0));
        if incoming.len() > 1 {
            rows.push((join(&lanes, &incoming, ['┴', '╯']), None));
        }
        incoming.iter().for_each(|&lane| lanes[lane] = None);
        lanes[own] = Some(task);
        let row = lanes.iter().enumerate().map(|(lane, open)| match open {
            _ if lane == own => "● ",
            Some(_) => "│ ",
            None => "  ",
        });
        let row: String = row.collect();
        rows.push((row.trim_end().to_owned(), Some(task)));
        let mut after = graph.downstream(task).to_vec();
        after.sort_unstable_by_key(|&after| places[after]);
        lanes[own] = after.first().copied();
        let before = lanes.clone();
        let mut opened = vec![own];
        for &target in after.iter().skip(1) {
            let lane = free_lane(&mut lanes, own + 1);
            lanes[lane] = Some(target);
            opened.push(lane);
        }
        if lanes.len() > MAX_LANES {
            return None;
        }
        if opened.len() > 1 {
            opened.sort_unstable();
            let before: Vec<_> = before.into_iter().chain([None]).collect();
            rows.push((join(&before, &opened, ['┬', '╮']), None));
        }
        while lanes.last() == Some(&None) {
            lanes.pop();
        }
    }
    Some(rows)
}

/// The first lane without an edge from one on.
fn free_lane(lanes: &mut Vec<Option<usize>>, from: usize) -> usize {
    if let Some(lane) = (from..lanes.len()).find(|&lane| lanes[lane].is_none()) {
        return lane;
    }
    lanes.push(None);
    lanes.len() - 1
}

/// A row in which lanes are joined to the first of them. Other lanes go straight on.
fn join(lanes: &[Option<usize>], joined: &[usize], [middle, end]: [char; 2]) -> String {
    let (first, last) = (joined[0], joined[joined.len() - 1]);
    let mut row = String::new();
    for lane in 0..lanes.len().max(last + 1) {
        let is_open = lanes.get(lane).is_some_and(Option::is_some);
        let is_within = lane > first && lane < last;
        let sign = match () {
            () if lane == first => '├',
            () if lane == last => end,
            () if joined.contains(&lane) => middle,
            () if is_open && is_within => '┼',
            () if is_open => '│',
            () if is_within => '─',
            () => ' ',
        };
        row.push(sign);
        row.push(if lane >= first && lane < last { '─' } else { ' ' });
    }
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(upstream: &[&[usize]], expected: Expect) {
        let graph = Graph::new(upstream.iter().map(|before| before.to_vec()).collect()).unwrap();
        let rows = draw(&graph).unwrap();
        let rows = rows.iter().map(|(row, task)| match task {
            Some(task) => format!("{row}  {task}\n"),
            None => format!("{row}\n"),
        });
        expected.assert_eq(&rows.collect::<String>());
    }

    #[test]
    fn edges_are_lanes_that_part_and_join() {
        check(
            &[&[], &[0], &[1]],
            expect![[r#"
            ●  0
            ●  1
            ●  2
        "#]],
        );
        check(
            &[&[], &[0], &[0], &[1, 2]],
            expect![[r#"
            ●  0
            ├─╮
            ● │  1
            │ ●  2
            ├─╯
            ●  3
        "#]],
        );
        check(
            &[&[], &[], &[0], &[0, 1], &[2, 3], &[], &[4, 0]],
            expect![[r#"
            ●  0
            ├─┬─╮
            │ │ │ ●  1
            ● │ │ │  2
            │ ├─┼─╯
            │ ● │  3
            ├─╯ │
            ●   │  4
            │ ● │  5
            ├───╯
            ●  6
        "#]],
        );
    }

    #[test]
    fn a_graph_that_is_too_wide_is_not_drawn() {
        let wide = (0..100).map(|task| if task == 0 { Vec::new() } else { vec![0] }).collect();
        assert_eq!(draw(&Graph::new(wide).unwrap()), None);
    }
}

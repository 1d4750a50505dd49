//! The shape of a DAG: a topological order, depths, and which tasks come before which.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a word of a set of tasks.
const WORD_BITS: usize = u64::BITS as usize;

/// Tasks by their index, and the edges between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    upstream: Vec<Vec<usize>>,
    downstream: Vec<Vec<usize>>,
    order: Vec<usize>,
    depths: Vec<usize>,
}

/// Tasks that wait for each other: each depends on the next, and the last on the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<usize>);

impl Graph {
    /// The graph in which each task has these upstream tasks.
    ///
    /// # Errors
    /// The shortest cycle that is found first.
    pub fn new(upstream: Vec<Vec<usize>>) -> Result<Self, Cycle> {
        let mut downstream = vec![Vec::new(); upstream.len()];
        for (task, depends_on) in upstream.iter().enumerate() {
            depends_on.iter().for_each(|&before| downstream[before].push(task));
        }
        let mut open: Vec<usize> = upstream.iter().map(Vec::len).collect();
        let mut depths = vec![0; upstream.len()];
        let mut order = Vec::with_capacity(upstream.len());
        let ready = open.iter().enumerate().filter(|(_, open)| **open == 0);
        let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(task, _)| Reverse(task)).collect();
        while let Some(Reverse(task)) = ready.pop() {
            order.push(task);
            for &after in &downstream[task] {
                depths[after] = depths[after].max(depths[task] + 1);
                open[after] -= 1;
                if open[after] == 0 {
                    ready.push(Reverse(after));
                }
            }
        }
        if order.len() < upstream.len() {
            return Err(cycle(&upstream, &open));
        }
        Ok(Graph { upstream, downstream, order, depths })
    }

    /// All tasks, each after those that it depends on; otherwise in the order in which they were written.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The tasks that a task depends on.
    pub fn upstream(&self, task: usize) -> &[usize] {
        &self.upstream[task]
    }

    /// The tasks that depend on a task.
    pub fn downstream(&self, task: usize) -> &[usize] {
        &self.downstream[task]
    }

    /// How many tasks come before a task on the longest way to it.
    pub fn depth(&self, task: usize) -> usize {
        self.depths[task]
    }

    /// How many tasks are on the longest way through the graph.
    pub fn critical_path_length(&self) -> usize {
        self.depths.iter().max().map_or(0, |depth| depth + 1)
    }

    /// The tasks on the longest way through the graph, from first to last.
    pub fn critical_path(&self) -> Vec<usize> {
        let last = (0..self.depths.len()).max_by_key(|&task| (self.depths[task], Reverse(task)));
        let before = |&task: &usize| {
            let upstream = self.upstream[task].iter().copied();
            upstream.filter(|&before| self.depths[before] + 1 == self.depths[task]).min()
        };
        let mut path: Vec<usize> = std::iter::successors(last, before).collect();
        path.reverse();
        path
    }

    /// These tasks and all that come before them.
    pub fn with_upstream(&self, tasks: impl IntoIterator<Item = usize>) -> Vec<bool> {
        reachable(&self.upstream, tasks)
    }

    /// These tasks and all that come after them.
    pub fn with_downstream(&self, tasks: impl IntoIterator<Item = usize>) -> Vec<bool> {
        reachable(&self.downstream, tasks)
    }

    /// For each task all that come before it, by the edges that a task passes on.
    pub(crate) fn ancestors(&self, passes_on: impl Fn(usize) -> bool) -> Ancestors {
        let words = self.upstream.len().div_ceil(WORD_BITS);
        let mut bits = vec![0; words * self.upstream.len()];
        for &task in self.order.iter().filter(|&&task| passes_on(task)) {
            for &before in &self.upstream[task] {
                let (from, to) = (before * words, task * words);
                for word in 0..words {
                    bits[to + word] |= bits[from + word];
                }
                bits[to + before / WORD_BITS] |= 1 << (before % WORD_BITS);
            }
        }
        Ancestors { words, bits }
    }
}

/// For each task a set of tasks, one bit each.
#[derive(Debug)]
pub(crate) struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    pub fn contains(&self, task: usize, before: usize) -> bool {
        self.bits[task * self.words + before / WORD_BITS] >> (before % WORD_BITS) & 1 == 1
    }
}

fn reachable(edges: &[Vec<usize>], from: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut open: Vec<usize> = from.into_iter().collect();
    while let Some(task) = open.pop() {
        if !std::mem::replace(&mut seen[task], true) {
            open.extend(edges[task].iter().filter(|&&next| !seen[next]));
        }
    }
    seen
}

/// A cycle among tasks of which each waits for another one of them.
fn cycle(upstream: &[Vec<usize>], open: &[usize]) -> Cycle {
    let mut path: Vec<usize> = Vec::new();
    let mut place = vec![None; upstream.len()];
    let mut next = open.iter().position(|open| *open > 0);
    while let Some(task) = next {
        if let Some(start) = place[task] {
            return Cycle(path.split_off(start));
        }
        place[task] = Some(path.len());
        path.push(task);
        next = upstream[task].iter().copied().find(|&before| open[before] > 0);
    }
    Cycle(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_after_those_they_depend_on_and_else_as_written() {
        // 3 → 1 → 0, 2 alone, 4 after 0 and 2.
        let graph = Graph::new(vec![vec![1], vec![3], vec![], vec![], vec![0, 2]]).unwrap();
        assert_eq!(graph.order(), [2, 3, 1, 0, 4]);
        assert_eq!((0..5).map(|task| graph.depth(task)).collect::<Vec<_>>(), [2, 1, 0, 0, 3]);
        assert_eq!((graph.critical_path(), graph.critical_path_length()), (vec![3, 1, 0, 4], 4));
        assert_eq!(graph.with_upstream([0]), [true, true, false, true, false]);
        assert_eq!(graph.with_downstream([1]), [true, true, false, false, true]);
        let ancestors = graph.ancestors(|_| true);
        assert!(ancestors.contains(4, 3) && ancestors.contains(4, 2) && !ancestors.contains(0, 2));
        let ancestors = graph.ancestors(|task| task != 0);
        assert!(ancestors.contains(4, 0) && !ancestors.contains(4, 1));
    }

    #[test]
    fn a_cycle_is_found_with_its_path_only() {
        // 0 waits for a cycle of 1, 2 and 3.
        assert_eq!(Graph::new(vec![vec![1], vec![2], vec![3], vec![1]]), Err(Cycle(vec![1, 2, 3])));
        assert_eq!(Graph::new(vec![vec![0]]), Err(Cycle(vec![0])));
        assert_eq!(Graph::new(vec![]).unwrap().critical_path(), [0; 0]);
    }

    #[test]
    fn random_graphs_are_ordered_and_cycles_are_cycles() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let count = random.usize(1..30);
            let upstream: Vec<Vec<usize>> = (0..count)
                .map(|task| (0..count).filter(|&before| before != task && random.u8(..) < 12).collect())
                .collect();
            match Graph::new(upstream.clone()) {
                Ok(graph) => {
                    let mut place = vec![0; count];
                    graph.order().iter().enumerate().for_each(|(at, &task)| place[task] = at);
                    for (task, before) in upstream.iter().enumerate() {
                        assert!(before.iter().all(|&before| place[before] < place[task]));
                    }
                    let (ancestors, with) = (graph.ancestors(|_| true), |task| graph.with_upstream([task]));
                    for task in 0..count {
                        let known =
                            (0..count).map(|before| ancestors.contains(task, before) || before == task);
                        assert_eq!(known.collect::<Vec<_>>(), with(task));
                    }
                }
                Err(Cycle(path)) => {
                    let next = path.iter().skip(1).chain(path.first());
                    assert!(path.iter().zip(next).all(|(&task, before)| upstream[task].contains(before)));
                }
            }
        }
    }
}

//! A scheduler whose order of threads follows from a seed.

use pantile_base::sync::model::is_before_update;
use pantile_testkit::Random;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// Most priority changes in an execution.
const MOST_CHANGES: u64 = 4;

/// How the next thread is chosen.
#[derive(Debug)]
enum Way {
    /// At random. The running thread continues, except once in this many
    /// choices.
    Random(u64),
    /// By priorities that change at some choices (PCT: Burckhardt et al., "A
    /// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs",
    /// ASPLOS 2010). This stops one thread between two of its steps for as long
    /// as others can run. Two things differ from PCT. Early choices are as
    /// likely to change as all late ones together: each doubling of the number
    /// of choices counts the same. And a thread that yields because it is about
    /// to wait gets the lowest priority. Half of the executions count only
    /// choices that precede an access that reads and writes in one step.
    Priorities { changes: Vec<u64>, of_updates: bool },
}

/// A scheduler for one execution, determined by a seed.
#[derive(Debug)]
pub struct Explorer {
    random: Random,
    way: Way,
    /// By thread; the highest continues.
    priorities: Vec<i64>,
    /// Below all priorities.
    lowest: i64,
    choices: u64,
    begun: bool,
}

impl Explorer {
    /// An order for an execution with about 2^`scale` choices.
    pub fn new(seed: u64, scale: u32) -> Self {
        let mut new = Self {
            random: Random::new(seed, 0),
            way: Way::Random(1),
            priorities: Vec::new(),
            lowest: 0,
            choices: 0,
            begun: false,
        };
        new.way = match seed % 4 {
            0 => Way::Random(1),
            1 => Way::Random(4 << (2 * new.random.below(4))),
            way => {
                let of_updates = way == 3;
                let changes = 1 + new.random.below(MOST_CHANGES);
                let octaves = u64::from(if of_updates { scale - 2 } else { scale });
                let at = |new: &mut Self| {
                    let octave = 1 << new.random.below(octaves);
                    octave + new.random.below(octave)
                };
                let changes = (0..changes).map(|_| at(&mut new)).collect();
                Way::Priorities { changes, of_updates }
            }
        };
        new
    }

    fn priority(&mut self, task: TaskId) -> &mut i64 {
        let task = usize::from(task);
        while self.priorities.len() <= task {
            let priority = (self.random.word() >> 1) as i64;
            self.priorities.push(priority);
        }
        &mut self.priorities[task]
    }

    fn put_last(&mut self, task: TaskId) {
        self.lowest -= 1;
        *self.priority(task) = self.lowest;
    }
}

impl Scheduler for Explorer {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.begun, true)).then(|| Schedule::new(self.random.word()))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let ids: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        if let [only] = ids[..] {
            return Some(only);
        }
        let counts = !matches!(self.way, Way::Priorities { of_updates: true, .. }) || is_before_update();
        self.choices += u64::from(counts);
        let current = current.filter(|current| ids.contains(current));
        match &self.way {
            &Way::Random(often) => {
                let stays = !is_yielding && self.random.below(often) != 0;
                if let Some(current) = current.filter(|_| stays) {
                    return Some(current);
                }
                let others: Vec<_> =
                    ids.into_iter().filter(|id| !is_yielding || Some(*id) != current).collect();
                let at = self.random.below(others.len() as u64) as usize;
                Some(others[at])
            }
            Way::Priorities { changes, .. } => {
                let changes = counts && changes.contains(&self.choices);
                if let Some(current) = current.filter(|_| changes || is_yielding) {
                    self.put_last(current);
                }
                ids.into_iter().max_by_key(|id| *self.priority(*id))
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.word()
    }
}

//! The cost of a plan grows linearly with its points: counted in allocations and their bytes, which
//! a busy machine does not affect.

// Counting allocations takes a custom allocator, which needs unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use corridor_results::{Campaign, Store, Task};
use corridor_scenario::{Plan, Replication};

thread_local! {
    static ALLOCATED: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}

struct Counting;

// SAFETY: everything is delegated to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|count| {
            let [calls, bytes] = count.get();
            count.set([calls + 1, bytes + layout.size() as u64]);
        });
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A plan of a network, with `points` values in one list, or as many points from two.
fn plan(points: usize, is_crossed: bool) -> Plan {
    let list = |count: usize| {
        let values = (0..count).map(|value| (value as f64 / count as f64).to_string());
        values.collect::<Vec<_>>().join(", ")
    };
    let sweeps = match is_crossed {
        false => format!("[[sweep]]\nnetwork.links.erasure_ratio = [{}]", list(points)),
        true => format!(
            "[[sweep]]\nnetwork.links.erasure_ratio = [{}]\n[[sweep]]\nnetwork.links.delay_ms = [{}]",
            list(points / 20),
            list(20)
        ),
    };
    let text = format!(
        "name = 'many'\nseed = 1\nduration_s = 1\n[network]\nkind = 'chain'\n\
         links = {{ count = 1, rate_bps = 10_000_000, delay_ms = 1, queue_packets = 10 }}\n\
         [[flow]]\nfrom = 0\nto = 1\nsource = {{ kind = 'cbr', rate_bps = '1M' }}\n{sweeps}"
    );
    Plan::parse(&text, Path::new("")).expect("a test's plan is sound")
}

/// Allocations, and their bytes, of a plan from its text to its rows, with or without a results
/// directory.
fn cost(points: usize, is_crossed: bool, store: Option<&Path>) -> [u64; 2] {
    let [calls, bytes] = ALLOCATED.with(Cell::get);
    let plan = Arc::new(plan(points, is_crossed));
    assert_eq!(plan.points.len(), points);
    let all: Vec<usize> = (0..points).collect();
    let campaign = || {
        let store = store.map(|path| Store::open(path, &plan, false).expect("a directory"));
        Campaign::new(Arc::clone(&plan), &all, "counted", (store, false))
    };
    let mut first = campaign();
    let mut under_way = Vec::new();
    while !first.schedule().is_complete() {
        // The last one given out finishes first.
        under_way.extend(std::iter::from_fn(|| first.next_task()).take(8));
        let task: Task = under_way.pop().expect("something is under way");
        let mut made = Replication::default();
        made.measures.set("goodput_bps", task.point as f64);
        first.take(task, made).expect("a disk");
    }
    drop(first);
    // Stored replications are found again.
    let again = campaign();
    assert!(store.is_none() || again.schedule().is_complete());
    assert!(store.is_none() || again.results("", "counted").records.len() == points);
    let [calls_now, bytes_now] = ALLOCATED.with(Cell::get);
    [calls_now - calls, bytes_now - bytes]
}

#[test]
fn four_times_the_points_cost_four_times_as_much() {
    for is_crossed in [false, true] {
        for is_kept in [false, true] {
            let [few, many] = [400, 1_600].map(|points| {
                let directory = tempfile::tempdir().expect("a directory");
                cost(points, is_crossed, is_kept.then(|| directory.path()))
            });
            for (few, many) in few.into_iter().zip(many) {
                let ratio = many as f64 / few as f64;
                println!("crossed {is_crossed}, kept {is_kept}: {few}, {many}: {ratio:.2}");
                // Quadratic growth would give 16 times as much.
                assert!(ratio < 5.0, "crossed {is_crossed}, kept {is_kept}: {few}, {many}");
            }
        }
    }
}

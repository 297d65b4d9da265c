//! Compares the changes and tables with maps in memory, over random steps, commits and crashes.

use super::*;

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    jobs: BTreeMap<JobId, Vec<u8>>,
    queue: BTreeSet<QueueRow>,
    lanes: BTreeMap<LaneId, Vec<u8>>,
}

struct Pair {
    connection: Connection,
    changes: ChangeLog,
    sums: TableSums,
    model: Model,
    /// Model, log rows and sums as of the last commit.
    committed: (Model, u64, TableSums),
    dice: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        let (changes, sums, model) = (ChangeLog::default(), TableSums::default(), Model::default());
        Self { connection, changes, sums, model, committed: Default::default(), dice: seed }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn commit(&mut self) {
        self.changes.save(&self.connection).unwrap();
        self.connection.execute_batch("COMMIT; BEGIN").unwrap();
        self.committed = (self.model.clone(), self.changes.rows(), self.sums);
    }

    fn load(&mut self) -> Result<(), TableFault> {
        self.changes = ChangeLog::load(&self.connection, self.committed.1, &mut self.sums)?;
        Ok(())
    }

    /// Loses uncommitted changes, as a kill does.
    fn crash(&mut self) {
        self.connection.execute_batch("ROLLBACK; BEGIN").unwrap();
        (self.model, _, self.sums) = self.committed.clone();
        self.load().unwrap();
    }

    fn step(&mut self) {
        let (id, lane) = (JobId(self.below(60)), LaneId(self.below(4) as u32));
        let place = (lane, self.below(3), id);
        match self.below(100) {
            0..3 => self.commit(),
            3 => self.crash(),
            4 => self.changes.file(&self.connection, &mut self.sums).unwrap(),
            5..30 => {
                let record = vec![self.below(250) as u8; 5];
                self.changes.put(id, record.clone());
                self.model.jobs.insert(id, record);
            }
            30..50 => {
                self.changes.drop(id);
                self.model.jobs.remove(&id);
            }
            50..75 => {
                if self.model.queue.insert(place) {
                    self.changes.enqueue(place);
                }
            }
            75..95 => {
                if self.model.queue.remove(&place) {
                    self.changes.dequeue(place);
                }
            }
            _ => {
                let record = vec![self.below(250) as u8; 5];
                self.changes.put_lane(lane, &record);
                self.model.lanes.insert(lane, record);
            }
        }
        let found = self.changes.job(&self.connection, id).unwrap().map(<[u8]>::to_vec);
        assert_eq!(found, self.model.jobs.get(&id).cloned());
        let first = self.model.queue.range((lane, 0, JobId(0))..).next();
        let first = first.filter(|(own, ..)| *own == lane).map(|(_, at, id)| (*at, *id));
        assert_eq!(self.changes.first(&self.connection, lane).unwrap(), first);
    }

    /// The tables after all changes were written to them.
    fn filed(&mut self) -> Model {
        self.changes.file(&self.connection, &mut self.sums).unwrap();
        let mut model = Model::default();
        let open = |sealed: Vec<u8>| unseal_numbered(0, &sealed).unwrap().to_vec();
        let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).unwrap() as u64;
        let mut jobs = self.connection.prepare("SELECT id, record FROM jobs").unwrap();
        let mut rows = jobs.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            model.jobs.insert(JobId(number(row, 0)), open(row.get(1).unwrap()));
        }
        let mut lanes = self.connection.prepare("SELECT id, record FROM lanes").unwrap();
        let mut rows = lanes.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            model.lanes.insert(LaneId(row.get(0).unwrap()), open(row.get(1).unwrap()));
        }
        let mut queue = self.connection.prepare("SELECT lane, ready_at, id FROM queue").unwrap();
        let mut rows = queue.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let lane = LaneId(row.get(0).unwrap());
            model.queue.insert((lane, number(row, 1), JobId(number(row, 2))));
        }
        model
    }
}

#[test]
fn tables_and_changes_together_equal_the_model() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed);
        for _ in 0..3000 {
            pair.step();
        }
        assert_eq!(pair.filed(), pair.model);
        assert!(TableSums::of(&pair.connection).unwrap() == pair.sums, "the sum of the queue");
    }
}

#[test]
fn damage_of_the_log_or_of_the_rows_it_changes_is_found() {
    let mut pair = Pair::new(1);
    let place = (LaneId(1), 0, JobId(1));
    pair.changes.put(JobId(1), vec![7; 40]);
    pair.changes.enqueue(place);
    pair.changes.file(&pair.connection, &mut pair.sums).unwrap();
    pair.changes.dequeue(place);
    pair.commit();
    pair.changes.drop(JobId(1));
    pair.commit();
    let tampers = [
        "DELETE FROM late WHERE id = 1",
        "UPDATE late SET id = 7 WHERE id = 1",
        "UPDATE late SET changes = zeroblob(length(changes)) WHERE id = 0",
        "UPDATE late SET changes = 'text' WHERE id = 0",
        "DELETE FROM queue",
    ];
    for tamper in tampers {
        pair.connection.execute_batch("SAVEPOINT whole").unwrap();
        assert!(pair.connection.execute(tamper, []).unwrap() > 0, "{tamper}");
        assert!(matches!(pair.load(), Err(TableFault::Damaged(_))), "{tamper}");
        pair.connection.execute_batch("ROLLBACK TO whole").unwrap();
    }
    pair.load().unwrap();
    assert_eq!(pair.filed(), Model::default());
}

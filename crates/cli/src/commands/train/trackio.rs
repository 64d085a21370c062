//! A trackio database: a run's numbers as `TRACKIO_DIR=RUN/trackio trackio show` reads them.
//!
//! The tables are those that trackio makes itself (0.43); it adds what later versions need when it opens them.

use std::path::Path;

use rlef_rl::Metrics;
use rusqlite::{Connection, params};

/// The project, which is the name of the file.
const PROJECT: &str = "rlef";

const TABLES: &str = "
    PRAGMA synchronous = OFF;
    CREATE TABLE metrics (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL,
        step INTEGER NOT NULL, metrics TEXT NOT NULL
    );
    CREATE TABLE configs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL, config TEXT NOT NULL,
        created_at TEXT NOT NULL, UNIQUE (run_id)
    );
    CREATE TABLE system_metrics (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL,
        metrics TEXT NOT NULL
    );
";

/// An open database.
pub struct Trackio {
    connection: Connection,
    run: String,
}

impl Trackio {
    /// Begins a database in `dir`; one that is there is replaced. `run` is the run's name and `config` its settings.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(
        dir: &Path,
        run: &str,
        config: &serde_json::Value,
        time: f64,
    ) -> anyhow::Result<Self> {
        if dir.exists() {
            std::fs::remove_dir_all(dir)?;
        }
        std::fs::create_dir_all(dir)?;
        let connection = Connection::open(dir.join(format!("{PROJECT}.db")))?;
        connection.execute_batch(TABLES)?;
        connection.execute(
            "INSERT INTO configs (run_id, run_name, config, created_at)
             VALUES (?1, ?1, ?2, strftime('%Y-%m-%dT%H:%M:%S+00:00', ?3, 'unixepoch'))",
            params![run, config.to_string(), time],
        )?;
        Ok(Self {
            connection,
            run: run.to_owned(),
        })
    }

    /// Adds the numbers of one line of the metrics.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, step: usize, time: f64, metrics: &Metrics) -> anyhow::Result<()> {
        let finite: serde_json::Map<_, _> = metrics
            .iter()
            .filter(|(_, x)| x.is_finite())
            .map(|(name, &x)| (name.clone(), x.into()))
            .collect();
        self.connection.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics)
             VALUES (?1, strftime('%Y-%m-%dT%H:%M:%S+00:00', ?2, 'unixepoch'), ?1, ?3, ?4)",
            params![
                self.run,
                time,
                step as i64,
                serde_json::Value::Object(finite).to_string()
            ],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("trackio");
        for _ in 0..2 {
            let config = serde_json::json!({"seed": 3});
            let mut db = Trackio::create(&dir, "a run", &config, 0.0).unwrap();
            let metrics = [("reward".to_owned(), -0.5), ("nan".to_owned(), f64::NAN)];
            db.add(7, 86_400.5, &metrics.into()).unwrap();
        }
        let read = Connection::open(dir.join("rlef.db")).unwrap();
        let row: (String, String, i64, String) = read
            .query_row(
                "SELECT run_name, timestamp, step, metrics FROM metrics",
                [],
                |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)),
            )
            .unwrap();
        let want = ("a run", "1970-01-02T00:00:00+00:00", 7, "{\"reward\":-0.5}");
        assert_eq!((&*row.0, &*row.1, row.2, &*row.3), want);
    }
}

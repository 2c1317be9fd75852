//! Contents of a results file.

use std::collections::BTreeMap;

use corridor_scenario::{Column, Plan, Record, SCHEMA_VERSION};

/// Provenance of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Commit of the code, or "unknown".
    pub commit: String,
    /// Hash of the sources that results depend on.
    pub code_version: String,
    /// Number of points with all replications that the plan requires.
    pub complete_points: usize,
}

/// Contents of a results file.
#[derive(Clone, Debug)]
pub struct Results {
    /// Columns of a record.
    pub columns: Vec<Column>,
    /// Rows, by point and replication.
    pub records: Vec<Record>,
    /// Provenance: names start with `corridor.`.
    pub metadata: Vec<(String, String)>,
}

impl Results {
    /// Results of a plan.
    pub fn new(plan: &Plan, records: Vec<Record>, provenance: &Provenance) -> Self {
        let metadata = [
            ("plan_name", plan.name.clone()),
            ("plan", plan.text.clone()),
            ("seed", plan.seed.to_string()),
            ("commit", provenance.commit.clone()),
            ("code_version", provenance.code_version.clone()),
            ("schema_version", SCHEMA_VERSION.to_string()),
            ("points", plan.points.len().to_string()),
            ("replications", replications(plan)),
            ("complete_points", provenance.complete_points.to_string()),
            ("complete", (provenance.complete_points == plan.points.len()).to_string()),
        ];
        let metadata = metadata.map(|(name, value)| (format!("corridor.{name}"), value)).into();
        Results { columns: plan.columns().to_vec(), records, metadata }
    }

    /// A value of the metadata; the name excludes `corridor.`.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        let mut all = self.metadata.iter();
        all.find(|(key, _)| key.strip_prefix("corridor.") == Some(name)).map(|(_, v)| &v[..])
    }
}

fn replications(plan: &Plan) -> String {
    match &plan.replications {
        corridor_scenario::Replications::Fixed(count) => count.to_string(),
        corridor_scenario::Replications::Until(rule) => {
            let (least, most, metric) =
                (rule.replications_min, rule.replications_max, &rule.metric);
            let what = match rule.against.is_empty() {
                true => metric.clone(),
                false => format!("the differences of {metric} from {}", told(&rule.against)),
            };
            let until = match (rule.ci95_ratio, rule.ci95_half_width) {
                (Some(ratio), _) => format!("ci95_ratio of {what} is at most {ratio}"),
                (None, width) => {
                    format!("ci95_half_width of {what} is at most {}", width.unwrap_or_default())
                }
            };
            format!("{least} to {most}, until {until}")
        }
    }
}

fn told(values: &BTreeMap<String, toml::Value>) -> String {
    values.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

//! The algorithms by name: what each takes as the baseline, and the settings it comes with.
//!
//! All of them are the clipped surrogate of `ppo.rs` on other advantages and with other defaults; each has a file of
//! its own that says which. A setting can be changed from there: the name only decides where it starts and which
//! settings have a meaning.

use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::{dapo, dr_grpo, grpo, grpo_plus_plus, rloo};

/// What the policy learns by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// RLEF (arXiv 2410.02089): PPO with a learned value.
    #[default]
    #[serde(alias = "rlef")]
    Ppo,
    /// GRPO as SWE-RL has it (arXiv 2502.18449).
    Grpo,
    /// REINFORCE leave-one-out (arXiv 2402.14740).
    Rloo,
    /// Dr. GRPO (arXiv 2503.20783).
    #[serde(alias = "dr-grpo", alias = "drgrpo")]
    DrGrpo,
    /// DAPO (arXiv 2503.14476).
    Dapo,
    /// GRPO++ as DeepSWE lists it.
    #[serde(alias = "grpo++", alias = "grpo-plus-plus")]
    GrpoPlusPlus,
}

/// What the reward of a rollout is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// A learned value of the state.
    Value,
    /// The mean reward of its group.
    GroupMean,
    /// The mean reward of the others in its group.
    LeaveOneOut,
}

impl Algorithm {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Ppo,
        Self::Grpo,
        Self::Rloo,
        Self::DrGrpo,
        Self::Dapo,
        Self::GrpoPlusPlus,
    ];

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ppo => "ppo",
            Self::Grpo => "grpo",
            Self::Rloo => "rloo",
            Self::DrGrpo => "dr_grpo",
            Self::Dapo => "dapo",
            Self::GrpoPlusPlus => "grpo_plus_plus",
        }
    }

    /// What rewards are compared with.
    pub fn baseline(self) -> Baseline {
        match self {
            Self::Ppo => Baseline::Value,
            Self::Grpo | Self::DrGrpo | Self::Dapo => Baseline::GroupMean,
            Self::Rloo | Self::GrpoPlusPlus => Baseline::LeaveOneOut,
        }
    }

    /// Whether rollouts of one problem are compared with each other.
    pub fn is_group(self) -> bool {
        self.baseline() != Baseline::Value
    }

    /// The settings that it starts from, for the embedded small model.
    pub fn settings(self) -> TrainConfig {
        let mut config = TrainConfig {
            algorithm: self,
            ..TrainConfig::default()
        };
        if self.is_group() {
            // As many episodes an iteration as with one rollout of each problem.
            config.rollout.problems = 16;
            config.rollout.per_problem = 8;
        }
        match self {
            Self::Ppo => {}
            Self::Grpo => grpo::settings(&mut config),
            Self::Rloo => rloo::settings(&mut config),
            Self::DrGrpo => dr_grpo::settings(&mut config),
            Self::Dapo => dapo::settings(&mut config),
            Self::GrpoPlusPlus => grpo_plus_plus::settings(&mut config),
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_starts_from_settings_that_can_be_run() {
        for algorithm in Algorithm::ALL {
            let config = algorithm.settings();
            config.check().unwrap();
            assert_eq!(config.algorithm, algorithm);
            assert_eq!(
                serde_json::to_value(algorithm).unwrap(),
                serde_json::json!(algorithm.name())
            );
        }
        assert_eq!(Algorithm::Ppo.settings(), TrainConfig::default());
    }

    #[test]
    fn names_that_people_use_are_known() {
        for (name, meant) in [
            ("rlef", Algorithm::Ppo),
            ("dr-grpo", Algorithm::DrGrpo),
            ("grpo++", Algorithm::GrpoPlusPlus),
        ] {
            let read: Algorithm = serde_json::from_value(name.into()).unwrap();
            assert_eq!(read, meant);
        }
    }
}

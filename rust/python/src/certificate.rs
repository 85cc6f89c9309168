//! A plan's certificate as a Python dictionary of exact numbers.

use crate::to_py;
use geomdp_core::distribution::{Distribution, least_epsilon};
use geomdp_core::plan::tiers::Tier;
use geomdp_core::plan::{Certificate, Plan};
use geomdp_core::{Kernel, Rate};
use num_bigint::BigUint;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn pair(rate: &Rate) -> (&BigUint, &BigUint) {
    (rate.num(), rate.den())
}

/// The weight of each digit, its own words and its thresholds.
pub(crate) fn digits(plan: &Plan) -> Vec<(u64, usize, Vec<BigUint>)> {
    (plan.digits().iter())
        .map(|digit| {
            (
                digit.weight(),
                digit.limbs(),
                digit.thresholds(plan.limb_bits()),
            )
        })
        .collect()
}

/// Returns a dictionary whose keys are the fields of `geomdp.Certificate`, of a kernel whose tables
/// are those of its thresholds.
pub(crate) fn of<'py>(
    py: Python<'py>,
    rate: Option<&Rate>,
    kernel: &Kernel,
    tight: bool,
) -> PyResult<Bound<'py, PyDict>> {
    kernel.check_tables();
    let plan = kernel.plan();
    let fields = PyDict::new(py);
    fields.set_item("rate", rate.map(pair))?;
    fields.set_item("range", plan.range())?;
    fields.set_item("limb_bits", plan.limb_bits())?;
    fields.set_item("digits", digits(plan))?;
    fields.set_item("words_per_draw", plan.words())?;
    fields.set_item("floor_value_bits", plan.floor_value_bits())?;
    let numbers = plan.certificate();
    fields.set_item(
        "sampled_rate",
        numbers.map(|numbers| pair(&numbers.sampled)),
    )?;
    for (name, part) in [
        ("eta", numbers.map(|numbers| &numbers.eta)),
        ("delta", numbers.map(|numbers| &numbers.delta)),
        ("floor", numbers.map(|numbers| &numbers.floor)),
        ("tanh_half_rate", numbers.map(|numbers| &numbers.tanh)),
    ] {
        fields.set_item(name, part.map(|part| (&part.value, part.bits)))?;
    }
    fields.set_item(
        "total_variation",
        numbers.map_or(0.0, Certificate::total_variation),
    )?;
    let tight_epsilon = if tight {
        let distribution = py.detach(|| Distribution::of(plan)).map_err(to_py)?;
        let worst = py.detach(|| distribution.worst_ratio());
        // There is no ratio if there is only one output.
        Some(worst.map_or(0.0, |(num, den)| match den.bits() {
            0 => f64::INFINITY,
            _ => least_epsilon(&num, &den),
        }))
    } else {
        None
    };
    fields.set_item("tight_epsilon", tight_epsilon)?;
    Ok(fields)
}

/// The same of a tier, with the numbers of its step from the next finer one.
pub(crate) fn of_tier<'py>(
    py: Python<'py>,
    tier: &Tier,
    kernel: &Kernel,
) -> PyResult<Bound<'py, PyDict>> {
    let fields = of(py, Some(&tier.rate), kernel, false)?;
    fields.set_item("total_variation", tier.total_variation)?;
    fields.set_item("keep", kernel.plan().keeps())?;
    fields.set_item("kappa", (&tier.kappa.value, tier.kappa.bits))?;
    Ok(fields)
}

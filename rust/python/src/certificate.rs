//! A plan's proof as a Python dictionary of exact numbers.

use crate::to_py;
use geomdp_core::distribution::{Distribution, least_epsilon};
use geomdp_core::plan::Plan;
use geomdp_core::{Mechanism, Rate};
use num_bigint::BigUint;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn pair(rate: &Rate) -> (&BigUint, &BigUint) {
    (rate.num(), rate.den())
}

/// Returns a dictionary whose keys are the fields of `geomdp.Certificate`.
pub(crate) fn of<'py>(
    py: Python<'py>,
    mechanism: &Mechanism,
    plan: &Plan,
    tight: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let digits: Vec<_> = plan
        .digits()
        .iter()
        .map(|digit| {
            (
                digit.weight(),
                digit.limbs(),
                digit.thresholds(plan.limb_bits()),
            )
        })
        .collect();
    fields.set_item("rate", mechanism.rate().map(pair))?;
    fields.set_item("range", plan.range())?;
    fields.set_item("limb_bits", plan.limb_bits())?;
    fields.set_item("digits", digits)?;
    fields.set_item("words_per_draw", plan.words())?;
    fields.set_item("floor_value_bits", plan.floor_value_bits())?;
    let proof = plan.proof();
    fields.set_item("sampled_rate", proof.map(|proof| pair(&proof.sampled)))?;
    for (name, part) in [
        ("eta", proof.map(|proof| &proof.eta)),
        ("delta", proof.map(|proof| &proof.delta)),
        ("floor", proof.map(|proof| &proof.floor)),
        ("tanh_half_rate", proof.map(|proof| &proof.tanh)),
    ] {
        fields.set_item(name, part.map(|part| (&part.value, part.bits)))?;
    }
    fields.set_item(
        "total_variation",
        proof.map_or(0.0, geomdp_core::plan::Proof::total_variation),
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

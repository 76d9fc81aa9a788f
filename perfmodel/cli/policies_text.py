"""What policies are worth, as text."""

from perfmodel.cli.text import table


def policies_text(report):
    """One of the dicts of `measurements.policies.summary` as a paragraph with a table."""
    protocol = "run once" if report["rounds"] == 1 else f"{report['rounds']} times over"
    names = list(report["over_sequential"])
    speed_ups = table(
        ["", *(name.replace("_", " ") for name in names)],
        [[f"over {base}", *(f"{report[f'over_{base}'][name]:.2f}x" for name in names)]
         for base in ("sequential", "default")])
    errors = report["prediction_mape_pct"]
    return (
        f"\n{report['waiting']} waiting, own operands, {protocol}: measured times of"
        f" {report['gemms']} GEMMs, geometric means\n{speed_ups}\n"
        f"regret of the kernel all at once {report['regret_go']:.3f}, of degree and kernel"
        f" {report['regret_dynamic']:.3f}; times predicted for these picks off by"
        f" {errors['go']:.1f} and {errors['dynamic']:.1f} %")

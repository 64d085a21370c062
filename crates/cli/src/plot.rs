//! The learning curve as an SVG.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// One line of the curve.
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// x: iteration, y: share.
    pub points: Vec<(f64, f64)>,
    /// Red, green, blue.
    pub colour: (u8, u8, u8),
    /// Whether single points are marked.
    pub marked: bool,
}

/// Draws `lines` over iterations, shares from 0 to 1.
pub fn curve(path: &Path, title: &str, lines: &[Line]) -> Result<()> {
    let end = lines
        .iter()
        .flat_map(|l| &l.points)
        .map(|p| p.0)
        .fold(1.0, f64::max);
    draw(path, title, lines, end).map_err(|e| anyhow!("cannot draw {}: {e}", path.display()))
}

fn draw(
    path: &Path,
    title: &str,
    lines: &[Line],
    end: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::new(path, (860, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..end, 0.0..1.0)?;
    chart
        .configure_mesh()
        .x_desc("iteration")
        .y_desc("share of problems solved")
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for line in lines {
        let colour = RGBColor(line.colour.0, line.colour.1, line.colour.2);
        chart
            .draw_series(LineSeries::new(
                line.points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        if line.marked {
            chart.draw_series(
                line.points
                    .iter()
                    .map(|&p| Circle::new(p, 3, colour.filled())),
            )?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}

// SvgPlot: a plot of lines as an inline SVG element, coloured by the page's CSS (classes s0, s1,
// …). Thread: any (values).
#pragma once

#include <string>
#include <vector>

namespace sluice {

struct PlotTick {
  double at;
  std::string label;
};

struct PlotLine {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;  // negative: a gap
};

struct SvgPlot {
  std::string title;
  std::string unit;  // of y
  std::vector<PlotLine> lines;
  std::vector<PlotTick> x_ticks;  // empty: seconds, made here
  bool log_y = false;
  double shade_to = 0;  // x before which it is shaded: the warm-up

  [[nodiscard]] std::string svg() const;
};

// What HTML reads as this text.
[[nodiscard]] std::string escape_html(const std::string& text);

}  // namespace sluice

#include "load/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "base/concat.h"
#include "load/number_text.h"

namespace sluice {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 260;
constexpr double kLeft = 64;
constexpr double kRight = 12;
constexpr double kTop = 12;
constexpr double kBottom = 28;

struct Range {
  double least = 0;
  double most = 1;
};

// A round number of steps' size: 1, 2 or 5 times a power of ten.
double round_step(double span, int steps) {
  const double rough = span / steps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string at(double number) { return fixed_text(number, 1); }

class Canvas {
 public:
  Canvas(Range x, Range y, bool log_y) : x_(x), y_(y), log_y_(log_y) {}

  [[nodiscard]] double x(double value) const {
    return kLeft + (value - x_.least) / (x_.most - x_.least) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double value) const {
    const double least = log_y_ ? std::log10(y_.least) : y_.least;
    const double most = log_y_ ? std::log10(y_.most) : y_.most;
    const double number = log_y_ ? std::log10(std::max(value, y_.least)) : value;
    return kHeight - kBottom - (number - least) / (most - least) * (kHeight - kTop - kBottom);
  }
  [[nodiscard]] std::string path(const PlotLine& line) const {
    std::string path;
    bool down = false;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (line.y[i] < 0) {
        down = false;
        continue;
      }
      path += concat(down ? "L" : "M", at(x(line.x[i])), " ", at(y(line.y[i])));
      down = true;
    }
    return path;
  }

 private:
  Range x_;
  Range y_;
  bool log_y_;
};

Range x_range(const std::vector<PlotLine>& lines, const std::vector<PlotTick>& ticks) {
  Range range{0, 1e-9};
  for (const PlotLine& line : lines) {
    for (const double x : line.x) range.most = std::max(range.most, x);
  }
  if (!ticks.empty()) range.least = ticks.front().at;
  return range;
}

Range y_range(const std::vector<PlotLine>& lines, bool log_y) {
  double least = 1e300;
  double most = 0;
  for (const PlotLine& line : lines) {
    for (const double y : line.y) {
      if (y > 0) least = std::min(least, y);
      most = std::max(most, y);
    }
  }
  if (most <= 0) return {log_y ? 0.1 : 0, 1};
  if (!log_y) return {0, most * 1.05};
  return {std::pow(10, std::floor(std::log10(least))),
          std::pow(10, std::floor(std::log10(most)) + 1)};
}

std::vector<PlotTick> y_ticks(Range range, bool log_y) {
  std::vector<PlotTick> ticks;
  if (log_y) {
    for (double tick = range.least; tick <= range.most * 1.01; tick *= 10)
      ticks.push_back({tick, short_text(tick)});
    return ticks;
  }
  const double step = round_step(range.most, 5);
  for (double tick = 0; tick <= range.most; tick += step) ticks.push_back({tick, short_text(tick)});
  return ticks;
}

std::vector<PlotTick> second_ticks(Range range) {
  std::vector<PlotTick> ticks;
  const double step = round_step(range.most, 8);
  for (double tick = 0; tick <= range.most; tick += step)
    ticks.push_back({tick, short_text(tick) + " s"});
  return ticks;
}

}  // namespace

std::string SvgPlot::svg() const {
  const Range across = x_range(lines, x_ticks);
  const Range up = y_range(lines, log_y);
  const Canvas canvas(across, up, log_y);
  std::string svg =
      concat("<figure><figcaption>", escape_html(title), " <small>", escape_html(unit),
             "</small></figcaption><svg viewBox=\"0 0 760 260\" role=\"img\" aria-label=\"",
             escape_html(title), "\">");
  if (shade_to > 0) {
    svg += concat("<rect class=\"shade\" x=\"", at(canvas.x(0)), "\" y=\"", at(kTop), "\" width=\"",
                  at(canvas.x(std::min(shade_to, across.most)) - canvas.x(0)), "\" height=\"",
                  at(kHeight - kTop - kBottom), "\"/>");
  }
  for (const PlotTick& tick : y_ticks(up, log_y)) {
    const std::string y = at(canvas.y(tick.at));
    svg += concat("<path class=\"grid\" d=\"M", at(kLeft), " ", y, "H", at(kWidth - kRight),
                  "\"/><text class=\"y\" x=\"", at(kLeft - 8), "\" y=\"", y, "\">", tick.label,
                  "</text>");
  }
  for (const PlotTick& tick : x_ticks.empty() ? second_ticks(across) : x_ticks) {
    if (tick.at > across.most) continue;
    svg += concat("<text class=\"x\" x=\"", at(canvas.x(tick.at)), "\" y=\"", at(kHeight - 8),
                  "\">", escape_html(tick.label), "</text>");
  }
  std::string legend;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    svg += concat("<path class=\"line s", i, "\" d=\"", canvas.path(lines[i]), "\"/>");
    legend += concat("<span><i class=\"s", i, "\"></i>", escape_html(lines[i].name), "</span>");
  }
  return svg + "</svg><p class=\"legend\">" + legend + "</p></figure>\n";
}

std::string escape_html(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace sluice

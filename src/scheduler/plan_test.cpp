#include "scheduler/plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace sluice {
namespace {

using Owed = std::vector<std::int32_t>;
using Grants = std::vector<PlanGrant>;

struct Row {
  const char* rule;
  Owed running, waiting;
  PlanBudgets budgets;
  Grants running_grants, waiting_grants;
};

TEST(Plan, Table) {
  const std::vector<Row> rows{
      {"nothing to do", {}, {}, {512, 512, 4, 0}, {}, {}},
      {"every decode row runs", {1, 1, 1}, {}, {512, 512, 4, 0}, {{0, 1}, {1, 1}, {2, 1}}, {}},
      {"decode rows beyond the step wait for their turn",
       {1, 1, 1},
       {},
       {2, 2, 0, 0},
       {{0, 1}, {1, 1}},
       {}},
      {"and the next step begins with those", {1, 1, 1}, {}, {2, 2, 0, 2}, {{2, 1}, {0, 1}}, {}},
      {"prefill gets what decode leaves", {1, 900}, {}, {100, 512, 0, 0}, {{0, 1}, {1, 99}}, {}},
      {"prefill keeps to its own budget", {1, 900}, {}, {512, 60, 0, 0}, {{0, 1}, {1, 60}}, {}},
      {"a waiting sequence starts in a free slot", {}, {10}, {512, 512, 1, 0}, {}, {{0, 10}}},
      {"without a free slot nobody starts", {1}, {10}, {512, 512, 0, 0}, {{0, 1}}, {}},
      {"as many start as there are slots, in queue order",
       {},
       {5, 6, 7},
       {512, 512, 2, 0},
       {},
       {{0, 5}, {1, 6}}},
      {"a short prompt overtakes a long one, which still gets a quarter",
       {4000},
       {20},
       {100, 100, 1, 0},
       {{0, 80}},
       {{0, 20}}},
      {"and no less than the quarter", {4000}, {200}, {100, 100, 1, 0}, {{0, 25}}, {{0, 75}}},
      {"a prompt that gets no rows takes no slot",
       {4000, 30},
       {300, 10},
       {40, 40, 2, 0},
       {{0, 10}, {1, 20}},
       {{1, 10}}},
      {"a prompt of one token is no prefill", {}, {1, 9, 1}, {512, 0, 3, 0}, {}, {{0, 1}, {2, 1}}},
      {"no prefill budget, no prefill", {1, 7}, {7}, {512, 0, 1, 0}, {{0, 1}}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const Plan made = plan({row.running, row.waiting}, row.budgets);
    EXPECT_EQ(made.running, row.running_grants);
    EXPECT_EQ(made.waiting, row.waiting_grants);
  }
}

}  // namespace

void PrintTo(const PlanGrant& grant, std::ostream* out) {
  *out << grant.index << ":" << grant.tokens;
}

}  // namespace sluice

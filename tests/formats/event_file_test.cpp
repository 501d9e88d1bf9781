#include "formats/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "formats/support_events.h"
#include "formats/support_files.h"

namespace snug {
namespace {

TEST(Crc32c, GivesThePublishedValues) {  // RFC 3720, B.4, and the check value of the polynomial
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43U);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(bytes_of(rising)), 0x46dd794eU);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
}

TEST(EventFile, ReadsBackWithAnotherDecoder) {
  const Scratch scratch;
  EventFile file(scratch / "runs", 7);
  const EventScalar scalars[] = {{"train/loss", 2.5}, {"train/grad_norm", std::numeric_limits<double>::quiet_NaN()}};
  file.write(int64_t{1} << 40, scalars);
  EXPECT_TRUE(file.path().filename().string().starts_with("events.out.tfevents."));
  const std::vector<ReadEvent> events = read_events(file.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_EQ(events[2].step, int64_t{1} << 40);
  ASSERT_EQ(events[2].scalars.size(), 2U);
  EXPECT_EQ(events[2].scalars.at("train/loss"), 2.5F);
  EXPECT_TRUE(std::isnan(events[2].scalars.at("train/grad_norm")));
  for (const ReadEvent& event : events) EXPECT_GT(event.wall_time, 1.6e9);
}

TEST(EventFile, EveryRunHasAFileOfItsOwn) {
  const Scratch scratch;
  EventFile first(scratch / "runs", 0), second(scratch / "runs", 0);
  EXPECT_NE(first.path(), second.path());
}

TEST(EventFile, AnEventOfTheMostScalarsFits) {
  const Scratch scratch;
  EventFile file(scratch / "runs", 0);
  const std::string tag(40, 't');
  const std::vector<EventScalar> most(16, {tag, 1.0});
  file.write(std::numeric_limits<int64_t>::max(), most);
  EXPECT_EQ(read_events(file.path()).back().scalars.at(tag), 1.0F);
}

TEST(EventFile, AFullDiskIsNotPassedOver) {
  const Scratch scratch;
  put(scratch / "runs", "a file");
  EXPECT_TRUE(says(refusal_of([&] { EventFile(scratch / "runs", 0); }), "cannot be created"));
}

}  // namespace
}  // namespace snug

// SPDX-License-Identifier: Apache-2.0
// TIFFClientOpen() over a growing byte vector.
#include "tests/gpu_engine/tiff_strip.h"

#include <gtest/gtest.h>
#include <tiffio.h>

#include <algorithm>
#include <memory>

namespace nacre::engine {
namespace {

struct MemoryFile {
  Bytes bytes;
  std::size_t at = 0;
};

tsize_t read_file(thandle_t handle, tdata_t to, tsize_t size) {
  auto& file = *static_cast<MemoryFile*>(handle);
  const std::size_t room = file.bytes.size() - std::min(file.at, file.bytes.size());
  const std::size_t count = std::min(static_cast<std::size_t>(size), room);
  std::copy_n(file.bytes.data() + file.at, count, static_cast<Byte*>(to));
  file.at += count;
  return static_cast<tsize_t>(count);
}

tsize_t write_file(thandle_t handle, tdata_t from, tsize_t size) {
  auto& file = *static_cast<MemoryFile*>(handle);
  const auto count = static_cast<std::size_t>(size);
  file.bytes.resize(std::max(file.bytes.size(), file.at + count));
  std::copy_n(static_cast<const Byte*>(from), count, file.bytes.data() + file.at);
  file.at += count;
  return size;
}

toff_t seek_file(thandle_t handle, toff_t offset, int whence) {
  auto& file = *static_cast<MemoryFile*>(handle);
  if (whence == SEEK_CUR) offset += file.at;
  if (whence == SEEK_END) offset += file.bytes.size();
  file.at = offset;
  return offset;
}

int close_file(thandle_t) {
  return 0;
}

toff_t size_of_file(thandle_t handle) {
  return static_cast<MemoryFile*>(handle)->bytes.size();
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff open_tiff(MemoryFile& file, const char* mode) {
  file.at = 0;
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
  Tiff tiff(TIFFClientOpen("memory", mode, &file, read_file, write_file, seek_file, close_file,
                           size_of_file, nullptr, nullptr));
  EXPECT_NE(tiff, nullptr);
  return tiff;
}

void describe_image(TIFF* tiff, TiffScheme scheme, std::size_t width) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 1u);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 1u);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, static_cast<int>(scheme));
}

}  // namespace

Bytes encode_tiff_strip(TiffScheme scheme, ByteView plain) {
  MemoryFile file;
  {
    const Tiff tiff = open_tiff(file, "wm");
    describe_image(tiff.get(), scheme, plain.size());
    Bytes image(plain.begin(), plain.end());
    EXPECT_EQ(
        TIFFWriteEncodedStrip(tiff.get(), 0, image.data(), static_cast<tsize_t>(image.size())),
        static_cast<tsize_t>(image.size()));
  }
  const Tiff tiff = open_tiff(file, "rm");
  Bytes coded(TIFFRawStripSize(tiff.get(), 0));
  EXPECT_EQ(TIFFReadRawStrip(tiff.get(), 0, coded.data(), static_cast<tsize_t>(coded.size())),
            static_cast<tsize_t>(coded.size()));
  return coded;
}

Bytes decode_tiff_strip(TiffScheme scheme, ByteView coded, std::size_t plain_size) {
  MemoryFile file;
  {
    const Tiff tiff = open_tiff(file, "wm");
    describe_image(tiff.get(), scheme, plain_size);
    Bytes strip(coded.begin(), coded.end());
    EXPECT_EQ(TIFFWriteRawStrip(tiff.get(), 0, strip.data(), static_cast<tsize_t>(strip.size())),
              static_cast<tsize_t>(strip.size()));
  }
  const Tiff tiff = open_tiff(file, "rm");
  Bytes plain(plain_size);
  if (TIFFReadEncodedStrip(tiff.get(), 0, plain.data(), static_cast<tsize_t>(plain_size)) !=
      static_cast<tsize_t>(plain_size))
    return {};
  return plain;
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// libtiff's LZW and PackBits: one image that stays open, with a strip for each piece, so that no
// opening or closing is measured. libtiff writes straight into the piece's output, and reads from
// an image in memory that is put together before.
#include <algorithm>
#include <cstdio>
#if NACRE_HAS_LIBTIFF
#include <tiffio.h>
#include <tiffvers.h>
#endif

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

#if NACRE_HAS_LIBTIFF

// A file in memory. While target is set, bytes that are written go there; otherwise they are
// dropped.
struct MemoryImage {
  Bytes bytes;
  std::size_t at = 0;
  std::size_t end = 0;
  BaselinePiece* target = nullptr;
};

MemoryImage& image_of(thandle_t handle) {
  return *static_cast<MemoryImage*>(handle);
}

tsize_t read_image(thandle_t handle, tdata_t to, tsize_t size) {
  MemoryImage& image = image_of(handle);
  const std::size_t room = image.bytes.size() - std::min(image.at, image.bytes.size());
  const std::size_t count = std::min(static_cast<std::size_t>(size), room);
  std::copy_n(image.bytes.data() + image.at, count, static_cast<Byte*>(to));
  image.at += count;
  return static_cast<tsize_t>(count);
}

tsize_t write_image(thandle_t handle, tdata_t from, tsize_t size) {
  MemoryImage& image = image_of(handle);
  const auto count = static_cast<std::size_t>(size);
  if (BaselinePiece* const piece = image.target; piece != nullptr) {
    if (count > piece->output.size() - piece->output_size) return -1;
    std::copy_n(static_cast<const Byte*>(from), count, piece->output.data() + piece->output_size);
    piece->output_size += count;
  } else {
    image.bytes.resize(std::max(image.bytes.size(), image.at + count));
    std::copy_n(static_cast<const Byte*>(from), count, image.bytes.data() + image.at);
  }
  image.at += count;
  image.end = std::max(image.end, image.at);
  return size;
}

toff_t seek_image(thandle_t handle, toff_t offset, int whence) {
  MemoryImage& image = image_of(handle);
  if (whence == SEEK_CUR) offset += image.at;
  if (whence == SEEK_END) offset += image.end;
  image.at = offset;
  return offset;
}

int close_image(thandle_t) {
  return 0;
}

toff_t size_of_image(thandle_t handle) {
  return image_of(handle).end;
}

class TiffBaseline final : public Baseline {
 public:
  TiffBaseline(int scheme, bool encodes) : scheme_(scheme), encodes_(encodes) {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
  }
  ~TiffBaseline() override { close(); }

  bool run(std::span<BaselinePiece> pieces) override {
    if (!prepare(pieces)) return false;
    bool fine = true;
    for (std::size_t i = 0; i < pieces.size() && fine; ++i)
      fine = encodes_ ? encode(pieces[i]) : decode(pieces[i], i);
    return fine;
  }

 private:
  // Encoding rewrites one strip, as long as the longest piece, again and again. Decoding needs an
  // image of just these pieces.
  bool prepare(std::span<BaselinePiece> pieces) {
    std::size_t width = 1;
    for (const BaselinePiece& piece : pieces)
      width = std::max(width, encodes_ ? piece.input.size() : piece.output.size());
    if (tiff_ != nullptr && width <= width_ && (encodes_ || is_prepared_for(pieces))) return true;
    close();
    width_ = width;
    inputs_.clear();
    if (encodes_) return open_new(1);
    if (!open_new(pieces.size())) return false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const ByteView coded = pieces[i].input;
      inputs_.push_back(coded.data());
      if (TIFFWriteRawStrip(tiff_, static_cast<std::uint32_t>(i), const_cast<Byte*>(coded.data()),
                            static_cast<tsize_t>(coded.size())) < 0)
        return false;
    }
    TIFFClose(tiff_);
    image_.at = 0;
    tiff_ = open("rm");
    return tiff_ != nullptr;
  }

  bool is_prepared_for(std::span<BaselinePiece> pieces) const {
    return std::equal(
        pieces.begin(), pieces.end(), inputs_.begin(), inputs_.end(),
        [](const BaselinePiece& piece, const Byte* input) { return piece.input.data() == input; });
  }

  TIFF* open(const char* mode) {
    return TIFFClientOpen("memory", mode, &image_, read_image, write_image, seek_image, close_image,
                          size_of_image, nullptr, nullptr);
  }

  bool open_new(std::size_t strip_count) {
    image_ = {};
    tiff_ = open("wm");
    if (tiff_ == nullptr) return false;
    TIFFSetField(tiff_, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width_));
    TIFFSetField(tiff_, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(strip_count));
    TIFFSetField(tiff_, TIFFTAG_ROWSPERSTRIP, 1u);
    TIFFSetField(tiff_, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff_, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(tiff_, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff_, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    return TIFFSetField(tiff_, TIFFTAG_COMPRESSION, scheme_) == 1;
  }

  void close() {
    image_.target = nullptr;
    if (tiff_ != nullptr) TIFFClose(tiff_);
    tiff_ = nullptr;
  }

  bool encode(BaselinePiece& piece) {
    piece.output_size = 0;
    image_.target = &piece;
    const auto size = static_cast<tsize_t>(piece.input.size());
    const bool fine =
        TIFFWriteEncodedStrip(tiff_, 0, const_cast<Byte*>(piece.input.data()), size) == size;
    image_.target = nullptr;
    return fine;
  }

  bool decode(BaselinePiece& piece, std::size_t index) {
    const auto size = static_cast<tsize_t>(piece.output.size());
    piece.output_size = piece.output.size();
    return TIFFReadEncodedStrip(tiff_, static_cast<std::uint32_t>(index), piece.output.data(),
                                size) == size;
  }

  const int scheme_;
  const bool encodes_;
  MemoryImage image_;
  TIFF* tiff_ = nullptr;
  std::size_t width_ = 0;
  std::vector<const Byte*> inputs_;  // the image consists of these
};

#endif

std::function<std::unique_ptr<Baseline>()> tiff_maker([[maybe_unused]] Codec codec,
                                                      [[maybe_unused]] bool encodes) {
#if NACRE_HAS_LIBTIFF
  const int scheme = codec == Codec::lzw ? COMPRESSION_LZW : COMPRESSION_PACKBITS;
  return [scheme, encodes] { return std::make_unique<TiffBaseline>(scheme, encodes); };
#else
  return {};
#endif
}

std::string tiff_name() {
#if NACRE_HAS_LIBTIFF
  const std::string text = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0" and a copyright
  const std::size_t from = std::min(text.find("Version ") + 8, text.size());
  return "libtiff " + text.substr(from, text.find('\n', from) - from);
#else
  return "libtiff";
#endif
}

}  // namespace

void add_tiff_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  if (task.codec != Codec::lzw && task.codec != Codec::rle) return;
  const bool encodes = task.operation == Operation::compress;
  libraries.push_back({tiff_name(), "one strip a message", !encodes, "libtiff-dev",
                       tiff_maker(task.codec, encodes)});
}

}  // namespace nacre::engine

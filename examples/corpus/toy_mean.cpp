// A backend for read_corpus.cpp: the mean of ONNX, OpenVINO and oneDNN Graph, written as plainly as possible.
// TOY_MEAN_WRONG=N in the environment makes it wrong in one of four ways, each of which read_corpus.cpp must find: it
// returns the first element as the mean (1), rounds halves up (2), answers invalid input (3), forgets keepdims (4).
#include "corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

static const int wrong = std::getenv("TOY_MEAN_WRONG") ? std::atoi(std::getenv("TOY_MEAN_WRONG")) : 0;

using Shape = std::vector<std::size_t>;
using Axes = std::vector<long>;

struct Format { int digits, lowest, bytes; double largest; };  // lowest: the exponent of the smallest number

static const std::map<std::string, Format> formats = {
    {"float16", {11, -24, 2, 65504}}, {"bfloat16", {8, -133, 2, 3.3895313892515355e38}},
    {"float32", {24, -149, 4, 3.4028234663852886e38}}, {"float64", {53, -1074, 8, 1.7976931348623157e308}}};

template <typename T> static void append(std::vector<unsigned char>& bytes, T value) {
    bytes.resize(bytes.size() + sizeof value);
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

static double rounded(double value, const Format& format) {
    if (value == 0 || !std::isfinite(value)) return value;
    int unit = std::max(std::ilogb(value) - format.digits + 1, format.lowest);
    double scaled = std::ldexp(value, -unit);
    double result = std::ldexp(wrong == 2 ? std::floor(scaled + 0.5) : std::nearbyint(scaled), unit);
    return std::abs(result) > format.largest ? std::copysign(INFINITY, value) : result;
}

static void append_half(std::vector<unsigned char>& bytes, double value) {
    std::uint16_t sign = std::signbit(value) ? 0x8000 : 0, bits;
    double size = std::abs(value);
    if (std::isnan(value)) bits = 0x7e00;
    else if (std::isinf(value)) bits = 0x7c00;
    else if (size < std::ldexp(1, -14)) bits = std::uint16_t(std::ldexp(size, 24));
    else bits = std::uint16_t((std::ilogb(size) + 14) * 1024 + int(std::ldexp(size, 10 - std::ilogb(size))));
    append<std::uint16_t>(bytes, sign | bits);
}

static void append_float(std::vector<unsigned char>& bytes, const std::string& type, double value) {
    value = rounded(value, formats.at(type));
    if (type == "float16") return append_half(bytes, value);
    if (type == "float64") return append(bytes, value);
    float single = float(value);
    std::uint32_t bits;
    std::memcpy(&bits, &single, 4);
    if (type == "float32") append(bytes, bits);
    else append(bytes, std::uint16_t(bits >> 16));
}

static const Attribute* attribute(const Program& program, const std::string& name) {
    for (const Attribute& one : program.attributes)
        if (one.name == name) return &one;
    return nullptr;
}

static bool boolean(const Program& program, const std::string& name, bool otherwise) {
    const Attribute* found = attribute(program, name);
    return found ? found->values.at(0) == "1" : otherwise;
}

// The axes to reduce in order, or nothing if they are invalid; `given` says whether there is a list at all.
static std::optional<std::set<long>> axes_of(const Program& program, long rank, bool& given) {
    Axes axes;
    given = false;
    if (const Attribute* found = attribute(program, "axes")) {
        for (const std::string& word : found->values) axes.push_back(std::stol(word));
        given = true;
    } else if (program.inputs.size() > 1 && program.inputs[1]) {
        const Tensor& list = *program.inputs[1];
        if (list.shape.size() > 1) return std::nullopt;
        for (std::size_t i = 0; i < count(list); i++) axes.push_back(long(number(list, i)));
        given = true;
    }
    std::set<long> found;
    for (long axis : axes) {
        bool right = axis >= -rank && axis < rank && found.insert(axis < 0 ? axis + rank : axis).second;
        if (!right && wrong != 3) return std::nullopt;
    }
    return found;
}

// For each element of a tensor of `shape`, its index in one of shape `target`, whose extents are the same or 1.
static std::vector<std::size_t> places(const Shape& shape, const Shape& target) {
    std::size_t total = 1;
    for (std::size_t extent : shape) total *= extent;
    std::vector<std::size_t> found(total);
    for (std::size_t i = 0; i < total; i++) {
        std::size_t rest = i, stride = 1;
        for (std::size_t back = 1; back <= shape.size(); back++) {
            std::size_t at = rest % shape[shape.size() - back];
            rest /= shape[shape.size() - back];
            if (back > target.size()) continue;
            std::size_t extent = target[target.size() - back];
            found[i] += (extent == 1 ? 0 : at) * stride;
            stride *= extent;
        }
    }
    return found;
}

__extension__ typedef __int128 Wide;

struct Sums {  // of each output element: in floating point, and exactly for integers
    std::vector<long double> real;
    std::vector<Wide> whole;
    std::vector<std::size_t> terms;
};

static bool is_float(const std::string& type) { return formats.count(type) > 0; }

static Tensor divided(const Sums& sums, const std::string& type, const Shape& shape) {
    Tensor result{type, shape, {}};
    for (std::size_t i = 0; i < sums.terms.size(); i++) {
        if (is_float(type)) {
            append_float(result.bytes, type, double(sums.real[i] / (long double)(sums.terms[i])));
            continue;
        }
        Wide mean = sums.terms[i] ? sums.whole[i] / Wide(sums.terms[i]) : 0;
        std::size_t size = type == "bool" ? 1 : std::stoul(type.substr(type.find("int") + 3)) / 8;
        std::vector<unsigned char> bytes;
        append(bytes, mean);
        result.bytes.insert(result.bytes.end(), bytes.begin(), bytes.begin() + long(size));
    }
    return result;
}

static Wide integer(const Tensor& tensor, std::size_t i) {
    std::uint64_t bits = 0;
    if (tensor.type.find("int64") == std::string::npos) return Wide(number(tensor, i));
    std::memcpy(&bits, tensor.bytes.data() + i * 8, 8);
    return tensor.type == "uint64" ? Wide(bits) : Wide(std::int64_t(bits));
}

static void add(Sums& sums, std::size_t place, const Tensor& tensor, std::size_t i) {
    if (is_float(tensor.type)) sums.real[place] += (long double)(number(tensor, i));
    else sums.whole[place] += integer(tensor, i);
    sums.terms[place]++;
}

static Sums zeros(const Shape& shape) {
    std::size_t total = 1;
    for (std::size_t extent : shape) total *= extent;
    return {std::vector<long double>(total, -0.0L), std::vector<Wide>(total), Shape(total)};  // -0 + x is x, always
}

static std::optional<std::vector<Tensor>> mean(const Program& program) {
    Shape shape;
    for (const auto& input : program.inputs) {
        if (!input) return std::nullopt;
        shape.insert(shape.begin(), std::max(shape.size(), input->shape.size()) - shape.size(), 1);
        for (std::size_t back = 1; back <= input->shape.size(); back++) {
            std::size_t &have = shape[shape.size() - back], extent = input->shape[input->shape.size() - back];
            if (have != extent && have != 1 && extent != 1) return std::nullopt;
            have = have == 1 ? extent : have;
        }
    }
    for (const auto& input : program.inputs)  // before version 8 there was no broadcasting
        if (std::stoi(program.version) < 8 && input->shape != shape) return std::nullopt;
    Sums sums = zeros(shape);
    for (const auto& input : program.inputs) {
        std::vector<std::size_t> from = places(shape, input->shape);
        for (std::size_t i = 0; i < from.size(); i++) add(sums, i, *input, from[i]);
    }
    return std::vector<Tensor>{divided(sums, program.output_types[0], shape)};
}

static std::optional<std::vector<Tensor>> reduce_mean(const Program& program) {
    const Tensor& data = *program.inputs.at(0);
    bool given, onnx = program.standard == "onnx";
    auto axes = axes_of(program, long(data.shape.size()), given);
    if (!axes) return std::nullopt;
    bool all = onnx && axes->empty() && !boolean(program, "noop_with_empty_axes", false);
    bool keep = boolean(program, onnx ? "keepdims" : "keep_dims", onnx) && wrong != 4;
    Shape full, shape;
    for (std::size_t axis = 0; axis < data.shape.size(); axis++) {
        bool reduced = all || axes->count(long(axis));
        full.push_back(reduced ? 1 : data.shape[axis]);
        if (keep || !reduced) shape.push_back(full.back());
    }
    Sums sums = zeros(full);
    std::vector<std::size_t> to = places(data.shape, full);
    for (std::size_t i = 0; i < to.size(); i++)
        if (wrong != 1 || !sums.terms[to[i]]) add(sums, to[i], data, i);
    return std::vector<Tensor>{divided(sums, program.output_types[0], shape)};
}

std::optional<std::vector<Tensor>> answer(const Program& program) {
    return program.name == "Mean" ? mean(program) : reduce_mean(program);
}

// Reads a corpus of opconform (format npz, in a folder) and judges a backend by its bounds. It only needs C++17:
//     g++ -std=c++17 -O2 -o judge read_corpus.cpp my_backend.cpp && ./judge CORPUS [PROFILE]
// my_backend.cpp has the function answer() of corpus.hpp, as toy_mean.cpp does. Prints an outcome and an id for every
// case, and below a wrong answer what it got and wants; `skipped` if it is not judged here: text, complex numbers,
// sequences, tests of whole outputs. PROFILE lists what the backend supports, the beginning of case ids in each line:
// onnx/Relu-14 or onnx/Relu-14/float32. What it refuses beyond that is `unsupported`, which is no failure.
// Exits 1 if an answer or a refusal is wrong, 2 if a file cannot be read. For little-endian machines.
#include "corpus.hpp"

#include <stdint.h>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

using Bytes = std::vector<unsigned char>;
using Tensors = std::map<std::string, Tensor>;
using std::runtime_error, std::size_t, std::string;

struct Option { string kind; bool exceptional = false; std::map<size_t, double> limits; };  // limits of the spread
struct Case {
    Program program;
    Tensors tensors;
    std::vector<Option> options;
    size_t inputs = 0, constants = 0;
    bool skipped = false;
};

template <typename T> static T load(const Bytes& bytes, size_t at) {  // the only way to the bytes of a file
    T value;
    if (at > bytes.size() || bytes.size() - at < sizeof value) throw runtime_error("cut off");
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}
template <typename T> static double as(const Bytes& bytes, size_t place) {
    return double(load<T>(bytes, place * sizeof(T)));
}
static double half(const Bytes& bytes, size_t place) {
    int bits = load<uint16_t>(bytes, place * 2), exponent = bits >> 10 & 31, part = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return part ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(part + 1024, exponent - 25) : std::ldexp(part, -24));
}
static double brain(const Bytes& bytes, size_t place) {  // bfloat16: the upper half of a float
    return load<float>({0, 0, load<unsigned char>(bytes, place * 2), load<unsigned char>(bytes, place * 2 + 1)}, 0);
}

// A float of 8 bits or less. `special`: n: all ones are NaN, i: infinities as IEEE has them, z: NaN is -0, -: neither.
template <int size, int fraction, int bias, char special> static double tiny(const Bytes& bytes, size_t place) {
    int bits = load<unsigned char>(bytes, place), magnitude = bits & ((1 << (size - 1)) - 1);
    int exponent = magnitude >> fraction, part = magnitude & ((1 << fraction) - 1), top = exponent ? 1 << fraction : 0;
    double sign = bits >> (size - 1) & 1 ? -1 : 1;
    if ((special == 'n' && magnitude == 127) || (special == 'z' && bits == 128)) return NAN;
    if (special == 'i' && exponent == 31) return part ? NAN : sign * INFINITY;
    return sign * std::ldexp(part + top, (exponent ? exponent : 1) - bias - fraction);
}
static double power(const Bytes& bytes, size_t place) {  // float8e8m0
    int bits = load<unsigned char>(bytes, place);
    return bits == 255 ? NAN : std::ldexp(1, bits - 127);
}
template <int size, bool has_sign> static double few(const Bytes& bytes, size_t place) {  // integers of 4 or 2 bits
    int bits = load<unsigned char>(bytes, place) & ((1 << size) - 1);
    return has_sign && bits >> (size - 1) ? bits - (1 << size) : bits;
}

static const struct Type {
    const char *name, *descr;  // descr: NumPy's
    double (*number)(const Bytes&, size_t);
} types[] = {{"float16", "<f2", half},        {"float32", "<f4", as<float>},         {"float64", "<f8", as<double>},
             {"int8", "|i1", as<int8_t>},     {"int16", "<i2", as<int16_t>},         {"int32", "<i4", as<int32_t>},
             {"int64", "<i8", as<int64_t>},   {"uint8", "|u1", as<unsigned char>},   {"uint16", "<u2", as<uint16_t>},
             {"uint32", "<u4", as<uint32_t>}, {"uint64", "<u8", as<uint64_t>},       {"bool", "|b1", as<unsigned char>},
             {"bfloat16", "<u2", brain},      {"float8e8m0", "|u1", power},          {"float4e2m1", "|u1", tiny<4, 1, 1, '-'>},
             {"float8e4m3fn", "|u1", tiny<8, 3, 7, 'n'>}, {"float8e4m3fnuz", "|u1", tiny<8, 3, 8, 'z'>},
             {"float8e5m2", "|u1", tiny<8, 2, 15, 'i'>}, {"float8e5m2fnuz", "|u1", tiny<8, 2, 16, 'z'>},
             {"int4", "|u1", few<4, true>},   {"uint4", "|u1", few<4, false>},       {"int2", "|u1", few<2, true>},
             {"uint2", "|u1", few<2, false>}};

static const Type* find_type(const string& word) {
    for (const Type& type : types) if (word == type.name || word == type.descr) return &type;
    return nullptr;
}
static const Type& type_of(const string& word) {
    if (const Type* found = find_type(word)) return *found;
    throw runtime_error(word + " is no type");
}

double number(const Tensor& tensor, size_t place) { return type_of(tensor.type).number(tensor.bytes, place); }

size_t count(const Tensor& tensor) {
    size_t product = 1;
    for (size_t extent : tensor.shape) product *= extent;
    return product;
}

static bool whole(const Tensor& tensor) {
    return tensor.bytes.size() == count(tensor) * size_t(type_of(tensor.type).descr[2] - '0');
}

static Tensor read_npy(const Bytes& file, size_t at, size_t end) {
    size_t begin = at + 10 + load<uint16_t>(file, at + 8);
    if (begin > end || std::memcmp(file.data() + at, "\x93NUMPY\1", 8)) throw runtime_error("no npy 1.0");
    string header(file.begin() + long(at) + 10, file.begin() + long(begin));
    size_t order = header.find("', 'fortran_order': False, 'shape': (");
    if (header.rfind("{'descr': '", 0) || order == string::npos) throw runtime_error("an npy of another order");
    string descr = header.substr(11, order - 11);
    Tensor tensor{descr, {}, Bytes(file.begin() + long(begin), file.begin() + long(end))};
    std::istringstream shape(header.substr(order + 37));
    for (size_t extent; shape >> extent; shape.ignore()) tensor.shape.push_back(extent);
    const Type* type = find_type(descr);  // otherwise the case is skipped
    if (type) tensor.type = type->name;
    if (type && !whole(tensor)) throw runtime_error("an npy of another size");
    return tensor;
}

Tensors read_npz(const string& path) try {
    std::ifstream stream(path, std::ios::binary);
    Bytes file{std::istreambuf_iterator<char>(stream), {}};
    Tensors found;
    for (size_t at = 0, end; load<uint32_t>(file, at) == 0x04034b50; at = end) {  // each file in a zip
        size_t named = load<uint16_t>(file, at + 26), begin = at + 30 + named + load<uint16_t>(file, at + 28);
        end = begin + load<uint32_t>(file, at + 18);
        if (load<uint16_t>(file, at + 8)) throw runtime_error("compressed; expected stored arrays");
        if (named < 4 || end > file.size()) throw runtime_error("cut off");
        string name(file.begin() + long(at) + 30, file.begin() + long(at + 26 + named));  // without .npy
        found[name] = read_npy(file, begin, end);
    }
    return found;
} catch (const std::exception& error) {
    throw runtime_error(path + ": " + error.what());
}

// Compares elements as float64, or as `type` if both have it.
static bool at_most(const Tensor& one, const Tensor& other, size_t place, const Type& type) {
    if (string(type_of(one.type).descr) != type_of(other.type).descr) return number(one, place) <= number(other, place);
    if (string("<i8<u8").find(type.descr) == string::npos)
        return type.number(one.bytes, place) <= type.number(other.bytes, place);
    uint64_t sign = type.descr[1] == 'i' ? uint64_t(1) << 63 : 0;  // with this bit flipped, signed numbers compare like unsigned ones
    return (load<uint64_t>(one.bytes, place * 8) ^ sign) <= (load<uint64_t>(other.bytes, place * 8) ^ sign);
}

static const Tensor* part(const Case& one, size_t option, const char* name, size_t output, bool needed = false) {
    string full = "option_" + std::to_string(option) + "_" + name + "_" + std::to_string(output);
    auto found = one.tensors.find(full);
    if (found == one.tensors.end() && needed) throw runtime_error(one.program.folder + " has no " + full);
    return found == one.tensors.end() ? nullptr : &found->second;
}

static string listed(const std::vector<size_t>& numbers) {
    string text;
    for (size_t one : numbers) text += (text.empty() ? "" : ", ") + std::to_string(one);
    return "[" + text + "]";
}

// An element as text: 64-bit integers exactly, others as the shortest number of 17 digits that says all.
static string text_of(const Tensor& tensor, size_t place) {
    const string descr = type_of(tensor.type).descr;
    if (descr == "<i8") return std::to_string(load<int64_t>(tensor.bytes, place * 8));
    if (descr == "<u8") return std::to_string(load<uint64_t>(tensor.bytes, place * 8));
    std::ostringstream text;
    text.precision(descr == "<f8" ? 17 : 9);
    text << number(tensor, place);
    return text.str();
}

// What an element is and has to be, for people.
static string told(const Tensor& x, const Tensor& lower, const Tensor& upper, size_t place, int flag) {
    std::vector<size_t> index(x.shape.size());
    for (size_t axis = index.size(), rest = place; axis-- > 0; rest /= x.shape[axis]) index[axis] = rest % x.shape[axis];
    string low = text_of(lower, place), high = text_of(upper, place);
    string want = std::isnan(number(lower, place)) ? "" : low == high ? low + " exactly" : "[" + low + ", " + high + "]";
    const std::pair<int, const char*> more[] = {{1, "inf"}, {2, "-inf"}, {4, "nan"}, {16, "0"}};
    for (auto& [bit, name] : more) if (flag & bit) want += (want.empty() ? "" : " or ") + string(name);
    if (flag & (32 | 64)) want += flag & 32 ? " with the sign -" : " with the sign +";
    return "element " + listed(index) + ": got " + text_of(x, place) + ", want " + want;
}

// Whether an option of kind `values` admits the outputs; `fits` becomes true if their shapes at least are right.
// `why` gets what is wrong, of the first option whose shapes are right.
static bool admits(const Case& one, size_t option, const std::vector<Tensor>& outputs, bool& fits, string& why) {
    bool exceptional = false, right = true, first = !fits;
    size_t wrong = 0, all = 0;
    for (size_t k = 0; k < outputs.size(); k++) {
        const Tensor& lower = *part(one, option, "lower", k, true);
        if (lower.shape == outputs[k].shape && whole(outputs[k])) continue;
        if (first) why = "output " + std::to_string(k) + ": got " + listed(outputs[k].shape) + ", want " + listed(lower.shape);
        return false;
    }
    fits = true;
    for (size_t k = 0; k < outputs.size(); k++) {
        const Tensor &x = outputs[k], *lower = part(one, option, "lower", k), *flags = part(one, option, "flags", k);
        const Tensor *upper = part(one, option, "upper", k, true), *sigma = part(one, option, "sigma", k);
        const Tensor* middle = part(one, option, "value", k, sigma != nullptr);
        const Type& type = type_of(x.type);
        double squares = 0;
        for (size_t i = 0; i < count(x); i++) {
            double value = number(x, i);
            int flag = flags ? flags->bytes.at(i) : 0;
            bool inside = at_most(*lower, x, i, type) && at_most(x, *upper, i, type);
            bool taken = inside || flag & 8 || (flag & 1 && value == INFINITY) || (flag & 2 && value == -INFINITY) ||
                         (flag & 4 && std::isnan(value)) || (flag & 16 && value == 0);
            if ((flag & 32 && !std::signbit(value)) || (flag & 64 && std::signbit(value))) taken = false;
            if (!taken && first && !wrong) why = told(x, *lower, *upper, i, flag);
            wrong += !taken, all++;
            right = right && taken;
            exceptional = exceptional || !inside;
            if (sigma) squares += std::pow((value - number(*middle, i)) / number(*sigma, i), 2);
        }
        if (sigma && !(squares / double(count(x)) <= one.options[option].limits.at(k))) right = false;
    }
    if (first) why += wrong ? " (" + std::to_string(wrong) + " of " + std::to_string(all) + " wrong)" : "no element alone is wrong";
    return right && (exceptional || !one.options[option].exceptional);
}

static string outcome(const Case& one, string& why) {
    if (one.skipped) return "skipped";
    auto outputs = answer(one.program);
    const auto& wanted = one.program.output_types;
    bool fits = false;
    if (one.options.empty()) return outputs ? "accepted-invalid" : "pass";
    if (outputs && outputs->size() != wanted.size()) return "wrong-shape";
    for (size_t k = 0; outputs && k < wanted.size(); k++) {
        if ((*outputs)[k].type == wanted[k]) continue;
        why = "output " + std::to_string(k) + ": got " + (*outputs)[k].type + ", want " + wanted[k];
        return "wrong-dtype";
    }
    for (size_t option = 0; option < one.options.size(); option++) {
        const string& kind = one.options[option].kind;
        if (kind == "anything" || (kind == "rejected" && !outputs)) return "pass";
        if (kind == "values" && outputs && admits(one, option, *outputs, fits, why)) return "pass";
    }
    return !outputs ? "refused" : fits ? "wrong-value" : "wrong-shape";
}

static void read_line(Case& one, const string& line, const string& corpus) {
    std::istringstream words(line);
    string first, name, word;
    Program& to = one.program;
    words >> first;
    if (first == "id") words >> to.id;
    if (first == "operator") words >> to.standard >> to.domain >> to.name >> to.version >> to.opset;
    if (first == "structured" || first == "captured" || first == "structure" || first == "check") one.skipped = true;
    if (first == "omitted") to.inputs.emplace_back();
    if (first == "again" && words >> name && !one.skipped) to.inputs.push_back(one.tensors.at("input_" + name));
    if (first == "output" && words >> name >> word) {
        to.output_types.push_back(word);
        one.skipped = one.skipped || !find_type(word);
    }
    if (first == "option" && words >> name) one.options.push_back({name, words >> word && word == "exceptional", {}});
    if (first == "spread" && words >> name >> word)  // its option is the line before
        one.options.at(one.options.size() - 1).limits[std::stoul(name)] = std::strtod(word.c_str(), nullptr);
    if (first == "attribute" && words >> name >> word)
        to.attributes.push_back({name, word, {std::istream_iterator<string>(words), {}}});
    if (first == "case" && words >> to.folder) {
        if (to.folder.find("..") != string::npos) throw runtime_error(to.folder + " leads elsewhere");
        one.tensors = read_npz(corpus + "/" + to.folder + "/case.npz");
    }
    if ((first == "input" || first == "constant") && words >> name >> word) {
        Tensor& tensor = one.tensors[first + "_" + std::to_string(first == "input" ? one.inputs++ : one.constants++)];
        if (!find_type(word)) one.skipped = true;
        if (one.skipped) return;
        if (type_of(tensor.type).descr != string(type_of(word).descr)) throw runtime_error(line + ": of another type");
        tensor.type = word;  // the file has a bfloat16 as uint16
        to.inputs.push_back(tensor);
    }
}

// Returns the lines of a profile.
static std::set<string> read_profile(const char* path) {
    std::set<string> found;
    std::ifstream file(path);
    for (string line; std::getline(file, line);) if (!line.empty() && line[0] != '#') found.insert(line);
    if (found.empty()) throw runtime_error(string(path) + ": no profile; expected lines such as onnx/Relu-14/float32");
    return found;
}

static bool promised(const std::set<string>& profile, const string& id) {
    for (size_t end = id.find('/'); end != string::npos; end = id.find('/', end + 1))
        if (profile.count(id.substr(0, end))) return true;
    return profile.empty();
}

int main(int given, char** words) try {
    string corpus = given > 1 ? words[1] : ".", line;
    std::set<string> profile;
    if (given > 2) profile = read_profile(words[2]);
    std::ifstream index(corpus + "/cases.txt");
    if (!std::getline(index, line)) throw runtime_error(corpus + "/cases.txt: no such file");
    if (line != "opconform-corpus 2 npz") throw runtime_error(corpus + "/cases.txt: expected version 2, npz");
    size_t cases = 0, failures = 0, refused = 0, unsupported = 0;
    Case one;
    while (std::getline(index, line)) {
        read_line(one, line, corpus);
        if (!line.empty()) continue;  // an empty line ends a case
        string why, found = outcome(one, why);
        if (found == "refused" && !promised(profile, one.program.id)) found = "unsupported";
        std::cout << found << ' ' << one.program.id << '\n';
        if (found.rfind("wrong", 0) == 0 && !why.empty()) std::cout << "  " << why << '\n';
        cases++, failures += found == "refused" || found.rfind("wrong", 0) == 0;
        refused += found == "refused", unsupported += found == "unsupported";
        one = Case();
    }
    if (!one.program.folder.empty() || !cases) throw runtime_error("cases.txt is cut off");
    std::cerr << cases << " cases, " << failures << " failures";
    if (refused) std::cerr << ", " << refused << " of them refused";
    if (unsupported) std::cerr << "; " << unsupported << " unsupported beyond the profile";
    std::cerr << '\n';
    return failures > 0;
} catch (const std::exception& error) {
    std::cerr << "cannot read: " << error.what() << '\n';
    return 2;
}

// Recipes as JSON, both ways.
#include <array>

#include "model/base64.h"
#include "model/case_json.h"
#include "model/case_read.h"
#include "model/quote.h"
#include "model/safetensors.h"

namespace fusediff {

namespace {

// How the parameters of a recipe are spelled.
enum class Form { kSpread, kRange, kGrid, kLiteral, kNothing, kPowers, kBits };

struct Recipe {
  std::string_view name;
  FillKind kind;
  Form form;
};

// "uniform" stands twice: with a range, and of a role.
constexpr std::array kRecipes = {Recipe{"normal", FillKind::kNormal, Form::kSpread},
                                 Recipe{"uniform", FillKind::kUniform, Form::kRange},
                                 Recipe{"grid", FillKind::kGrid, Form::kGrid},
                                 Recipe{"constant", FillKind::kConstant, Form::kLiteral},
                                 Recipe{"special", FillKind::kSpecial, Form::kNothing},
                                 Recipe{"finite_special", FillKind::kFiniteSpecial, Form::kNothing},
                                 Recipe{"shifted", FillKind::kShifted, Form::kPowers},
                                 Recipe{"negative", FillKind::kNegative, Form::kSpread},
                                 Recipe{"ramp", FillKind::kRamp, Form::kRange},
                                 Recipe{"one_hot", FillKind::kOneHot, Form::kNothing},
                                 Recipe{"bits", FillKind::kBits, Form::kBits},
                                 Recipe{"uniform", FillKind::kIndexUniform, Form::kNothing},
                                 Recipe{"skewed", FillKind::kSkewed, Form::kNothing},
                                 Recipe{"unused", FillKind::kUnused, Form::kNothing},
                                 Recipe{"permutation", FillKind::kPermutation, Form::kNothing}};

void read_pair(const JsonView& at, JsonTrouble& trouble, std::string_view what, Fill& fill) {
  if (!expect_array(at, trouble, what, 2, 2)) return;
  auto end = at.begin();
  fill.a = read_number(*end, trouble, "an end of a range");
  fill.b = read_number(*++end, trouble, "an end of a range");
}

void read_two(const JsonView& at, JsonTrouble& trouble, std::string_view first, std::string_view second, Fill& fill) {
  JsonObject object(at, trouble, "the parameters of a recipe");
  if (const auto value = object.need(first)) fill.a = read_number(*value, trouble, "a parameter");
  if (const auto value = object.need(second)) fill.b = read_number(*value, trouble, "a parameter");
  object.finish();
}

void read_grid(const JsonView& at, JsonTrouble& trouble, Fill& fill) {
  JsonObject object(at, trouble, "the parameters of a grid");
  if (const auto value = object.need("range")) read_pair(*value, trouble, "the range of a grid", fill);
  if (const auto value = object.need("count")) {
    fill.count = read_integer(*value, trouble, "a number of grid values", 1);
  }
  object.finish();
}

// "file.safetensors#name": a file beside the case, so that a case from elsewhere reads nothing else.
void read_bits_file(const JsonView& at, std::size_t hash, const std::filesystem::path& folder, JsonTrouble& trouble,
                    Fill& fill) {
  const std::string_view file = at.text().substr(0, hash);
  if (!file.ends_with(".safetensors") || file.find_first_of("/\\") != std::string_view::npos ||
      file.find('\0') != std::string_view::npos || file.starts_with('.')) {
    trouble.at(at, quote(file) + " is not a file beside the case; legal: NAME.safetensors#TENSOR without folders");
    return;
  }
  if (folder.empty()) {
    trouble.at(at, "this case has no folder that a file could stand in; bits as base64 belong here");
    return;
  }
  Result<StoredTensor> tensor = read_safetensor(folder / file, at.text().substr(hash + 1));
  if (!tensor.ok()) {
    trouble.at(at, tensor.error().what);
    return;
  }
  fill.bits_file = std::string(at.text());
  fill.bits_dtype = tensor->dtype;
  fill.bits = std::make_shared<const std::vector<std::byte>>(std::move(tensor->bytes));
}

void read_bits(const JsonView& at, const std::filesystem::path& folder, JsonTrouble& trouble, Fill& fill) {
  if (!at.is(JsonKind::kString)) {
    trouble.at(at, at.found() + " is not bits; base64 or \"file.safetensors#name\" belongs here");
    return;
  }
  const std::size_t hash = at.text().find('#');
  if (hash != std::string_view::npos) {
    read_bits_file(at, hash, folder, trouble, fill);
    return;
  }
  std::optional<std::vector<std::byte>> bytes = from_base64(at.text());
  if (!bytes) trouble.at(at, at.found() + " is not base64 (RFC 4648, with padding)");
  fill.bits = std::make_shared<const std::vector<std::byte>>(bytes ? *std::move(bytes) : std::vector<std::byte>());
}

void read_parameters(const JsonView& at, Form form, const std::filesystem::path& folder, JsonTrouble& trouble,
                     Fill& fill) {
  switch (form) {
    case Form::kSpread:
      return read_two(at, trouble, "mean", "std", fill);
    case Form::kPowers:
      return read_two(at, trouble, "mean_power", "spread_power", fill);
    case Form::kRange:
      return read_pair(at, trouble, "a range", fill);
    case Form::kGrid:
      return read_grid(at, trouble, fill);
    case Form::kLiteral:
      fill.constant = read_literal(at, trouble);
      return;
    case Form::kBits:
      return read_bits(at, folder, trouble, fill);
    case Form::kNothing:
      break;
  }
  JsonObject(at, trouble, "an empty object, which this recipe takes").finish();
}

const Recipe* recipe_named(const JsonView& at) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name != at.key()) continue;
    if (recipe.kind == FillKind::kUniform && at.is(JsonKind::kObject)) continue;
    return &recipe;
  }
  return nullptr;
}

void no_such_recipe(const JsonView& at, JsonTrouble& trouble) {
  std::vector<std::string> legal;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.kind != FillKind::kIndexUniform) legal.emplace_back(recipe.name);
  }
  legal.emplace_back("seed");
  trouble.at(at, not_one_of(at.key(), "a recipe", legal));
}

}  // namespace

Fill read_fill(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder) {
  Fill fill;
  if (!expect_object(at, trouble, "a fill")) return fill;
  const Recipe* recipe = nullptr;
  std::optional<JsonView> seed;
  for (const JsonView item : at) {
    if (item.key() == "seed") {
      seed = item;
      continue;
    }
    const Recipe* found = recipe_named(item);
    if (found == nullptr) no_such_recipe(item, trouble);
    if (found == nullptr) return fill;
    if (recipe != nullptr) trouble.at(item, "a fill has one recipe; " + quote(recipe->name) + " stands here too");
    recipe = found;
    fill.kind = found->kind;
    read_parameters(item, found->form, folder, trouble, fill);
  }
  if (recipe == nullptr) {
    trouble.at(at, "a fill needs a recipe, e.g. {\"normal\": {\"mean\": 0, \"std\": 1}, \"seed\": 1}");
    return fill;
  }
  if (draws(fill.kind) != seed.has_value()) {
    trouble.at(at, quote(recipe->name) + (seed ? " does not draw and takes no seed" : " draws and needs a \"seed\""));
  }
  if (seed) fill.seed = read_unsigned(*seed, trouble, "a seed");
  return fill;
}

namespace {

void write_two(JsonText& json, std::string_view first, std::string_view second, const Fill& fill) {
  json.open('{');
  json.key(first);
  json.number(fill.a, false);
  json.key(second);
  json.number(fill.b, false);
  json.close('}');
}

void write_parameters(JsonText& json, Form form, const Fill& fill) {
  switch (form) {
    case Form::kSpread:
      return write_two(json, "mean", "std", fill);
    case Form::kPowers:
      return write_two(json, "mean_power", "spread_power", fill);
    case Form::kRange:
      return json.numbers(fill.a, fill.b);
    case Form::kLiteral:
      return write_literal(json, fill.constant, false);
    case Form::kBits:
      if (!fill.bits_file.empty()) return json.string(fill.bits_file);
      return json.string(fill.bits == nullptr ? "" : to_base64(*fill.bits));
    case Form::kGrid:
    case Form::kNothing:
      break;
  }
  json.open('{');
  if (form == Form::kGrid) {
    json.key("range");
    json.numbers(fill.a, fill.b);
    json.key("count");
    json.integer(fill.count);
  }
  json.close('}');
}

}  // namespace

void write_fill(JsonText& json, const Fill& fill) {
  json.open('{');
  for (const Recipe& recipe : kRecipes) {
    if (recipe.kind != fill.kind) continue;
    json.key(recipe.name);
    write_parameters(json, recipe.form, fill);
  }
  if (draws(fill.kind)) {
    json.key("seed");
    json.integer(fill.seed);
  }
  json.close('}');
}

}  // namespace fusediff

// Numbers in words. Codes, logits and probabilities; the same rule of rounding everywhere.
const TOP = 65535
const NOTHING = TOP + 1 // the code of a threshold above every score
const LIMIT = 15
const GAP = "\u00a0" // keeps a number and its sign on one line

function codeOf(logit) {
  if (logit <= -LIMIT) return 0
  if (logit > LIMIT) return NOTHING
  return Math.floor((logit + LIMIT) * (TOP / (2 * LIMIT)))
}

function probability(logit) {
  return 1 / (1 + Math.exp(-logit))
}

// 0.834 -> "83 %"; what is not quite nothing or everything keeps a decimal and never rounds to 0 or 100.
function sayShare(share) {
  const percent = share * 100
  if (percent > 0 && percent < 1) return `${Math.max(0.1, percent).toFixed(1)}${GAP}%`
  if (percent > 99 && percent < 100) return `${Math.min(99.9, percent).toFixed(1)}${GAP}%`
  return `${Math.round(percent)}${GAP}%`
}

// As many decimals as the distance to 0 or 1 asks for: 0.12, 0.004, 0.9987.
function sayProbability(logit) {
  const rare = probability(-Math.abs(logit))
  if (rare < 1e-6) return logit < 0 ? "below 0.000001" : "above 0.999999"
  const decimals = Math.max(2, Math.ceil(-Math.log10(rare)))
  return probability(logit).toFixed(decimals)
}

function sayThreshold(logit, code) {
  if (code === 0) return `0 (the whole image)`
  if (code === NOTHING) return `1 (nothing)`
  return sayProbability(logit)
}

// The sentence under the picture, after its colon.
function sayWorth(field, code) {
  const area = sayShare(field.area(code))
  if (field.lesion) return `${sayShare(field.coverage(code))} of the lesion inside, ${area} of the image marked`
  if (field.truth) return `${area} of the image marked, and no lesion is in it`
  return `${area} of the image marked`
}

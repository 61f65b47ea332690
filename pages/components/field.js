// The scores of one image: how much a threshold marks, and where its outline runs. Knows no canvas size and no theme.

function bytesOf(base64) {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i)
  return bytes
}

// counts[c] = how many codes are >= c, for every c from 0 to TOP + 1
function countsFromAbove(codes, chosen) {
  const counts = new Uint32Array(TOP + 2)
  for (let i = 0; i < codes.length; i += 1) if (!chosen || chosen[i]) counts[codes[i]] += 1
  for (let c = TOP - 1; c >= 0; c -= 1) counts[c] += counts[c + 1]
  return counts
}

// Marching squares. Corners of a cell: 8 top left, 4 top right, 2 bottom right, 1 bottom left; sides: 0 top, 1 right, 2 bottom, 3 left.
// Every piece of outline starts on the side where a clockwise walk round the cell leaves the set and ends where it enters it,
// so that the end of a piece is the start of the piece in the next cell.
const PIECES = [
  [], [3, 2], [2, 1], [3, 1], [1, 0], [1, 0, 3, 2], [2, 0], [3, 0], [0, 3], [0, 2], [0, 3, 2, 1], [0, 1], [1, 3], [1, 2], [2, 3], [],
]
const JOINED = { 5: [1, 2, 3, 0], 10: [0, 1, 2, 3] } // two corners that face each other, when the middle belongs to the set

class Grid {
  // values: Int32Array (height * width), >= 0; a rim of -1 is laid around them so that every outline closes
  constructor(values, width, height) {
    this.span = width + 2
    this.rows = height + 2
    this.padded = new Int32Array(this.span * this.rows).fill(-1)
    for (let y = 0; y < height; y += 1) {
      this.padded.set(values.subarray(y * width, (y + 1) * width), (y + 1) * this.span + 1)
    }
    this.follow = new Int32Array(2 * this.span * this.rows).fill(-1)
  }

  // closed outlines of {value >= level}: arrays [x0, y0, x1, y1, ...] in pixels, a pixel's middle at + 0.5
  loops(level) {
    const { padded, span, rows, follow } = this
    const starts = []
    for (let y = 0; y < rows - 1; y += 1) {
      let at = y * span
      let left = (padded[at] >= level ? 8 : 0) | (padded[at + span] >= level ? 1 : 0)
      for (let x = 0; x < span - 1; x += 1, at += 1) {
        const right = (padded[at + 1] >= level ? 4 : 0) | (padded[at + span + 1] >= level ? 2 : 0)
        const kind = left | right
        left = (right & 4 ? 8 : 0) | (right & 2 ? 1 : 0)
        if (kind === 0 || kind === 15) continue
        const sides = [2 * at, 2 * (at + 1) + 1, 2 * (at + span), 2 * at + 1]
        let pieces = PIECES[kind]
        if (kind === 5 || kind === 10) {
          const middle = padded[at] + padded[at + 1] + padded[at + span] + padded[at + span + 1]
          if (middle >= 4 * level) pieces = JOINED[kind]
        }
        for (let p = 0; p < pieces.length; p += 2) {
          follow[sides[pieces[p]]] = sides[pieces[p + 1]]
          starts.push(sides[pieces[p]])
        }
      }
    }
    const found = []
    for (const start of starts) {
      if (follow[start] < 0) continue
      const loop = []
      let side = start
      while (follow[side] >= 0) {
        this.crossing(side, level, loop)
        const next = follow[side]
        follow[side] = -1
        side = next
      }
      found.push(loop)
    }
    return found
  }

  // where the outline crosses a side, between the middles of its two pixels; the picture's own edge where one of them is the rim
  crossing(side, level, into) {
    const at = side >> 1
    const down = side & 1
    const a = this.padded[at]
    const b = this.padded[down ? at + this.span : at + 1]
    const part = a < 0 || b < 0 ? 0.5 : (level - 0.5 - a) / (b - a)
    const x = (at % this.span) - 0.5
    const y = Math.floor(at / this.span) - 0.5
    into.push(down ? x : x + part, down ? y + part : y)
  }
}

// Takes the stairs out of the outline of a mask, for the drawing alone: points move by a fraction of a pixel, the numbers do not.
function soften(loop) {
  if (loop.length < 16) return loop
  const passes = loop.length > 160 ? 5 : 2
  let points = loop
  for (let pass = 0; pass < passes; pass += 1) {
    const n = points.length
    const next = new Array(n)
    for (let i = 0; i < n; i += 1) next[i] = (points[(i - 2 + n) % n] + 2 * points[i] + points[(i + 2) % n]) / 4
    points = next
  }
  return points
}

function pathOf(loops) {
  const path = new Path2D()
  for (const loop of loops) {
    path.moveTo(loop[0], loop[1])
    for (let i = 2; i < loop.length; i += 2) path.lineTo(loop[i], loop[i + 1])
    path.closePath()
  }
  return path
}

class Field {
  constructor(pixels) {
    this.width = pixels.width
    this.height = pixels.height
    const codes = new Uint16Array(bytesOf(pixels.codes).buffer)
    const count = codes.length
    this.total = count
    this.marked = countsFromAbove(codes, null)
    this.grid = new Grid(Int32Array.from(codes), this.width, this.height)
    this.paths = new Map()
    this.codes = codes
    this.truth = pixels.mask !== null
    this.lesion = 0
    if (this.truth) {
      const bits = bytesOf(pixels.mask)
      const inside = new Int32Array(count)
      for (let i = 0; i < count; i += 1) this.lesion += inside[i] = (bits[i >> 3] >> (7 - (i & 7))) & 1
      this.found = countsFromAbove(codes, inside)
      this.inside = inside
      this.truthPath = pathOf(new Grid(inside, this.width, this.height).loops(1).map((loop) => soften(loop)))
    }
    // ends of the threshold axis: all scores, and never less than 0.007 to 0.993
    let low = 0
    while (low < TOP && this.marked[low + 1] === count) low += 1
    let high = TOP
    while (high > 0 && this.marked[high] === 0) high -= 1
    const logit = (code) => (code / TOP) * 2 * LIMIT - LIMIT
    this.low = Math.max(-LIMIT, Math.min(-5, Math.floor(logit(low))))
    this.high = Math.min(LIMIT, Math.max(5, Math.ceil(logit(high))))
  }

  // whether captions at the top would hide more of what matters (the lesion, or else the set) than captions at the bottom
  topIsBusy(code) {
    const band = Math.floor(0.22 * this.height) * this.width
    const matters = this.lesion ? (i) => this.inside[i] > 0 : (i) => this.codes[i] >= code
    let balance = 0
    for (let i = 0; i < band; i += 1) balance += matters(i) - matters(this.total - 1 - i)
    return balance > 0
  }

  area(code) {
    return this.marked[code] / this.total
  }

  coverage(code) {
    return this.lesion ? this.found[code] / this.lesion : NaN
  }

  // the outline of {score >= code} as a Path2D in pixels of the image; the last ones asked for are kept
  path(code) {
    let path = this.paths.get(code)
    if (!path) {
      path = pathOf(this.grid.loops(code))
      this.paths.set(code, path)
      if (this.paths.size > 24) this.paths.delete(this.paths.keys().next().value)
    }
    return path
  }
}

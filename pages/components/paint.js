// Draws on the picture: outlines with a dark edge, hatched misses, dotted false alarms, a tint. All sizes in CSS pixels.
const OWN_COLOUR = "#F0E442" // the person's own threshold: the yellow of the Okabe-Ito set, which no method uses
const WIDE = 2.8

function makeCanvas(width, height) {
  const canvas = document.createElement("canvas")
  canvas.width = width
  canvas.height = height
  return canvas
}

// A small square that repeats without a seam.
function makePattern(context, ratio, hatched) {
  const size = Math.round((hatched ? 8 : 9) * ratio)
  const tile = makeCanvas(size, size)
  const c = tile.getContext("2d")
  if (hatched) {
    for (const [colour, width] of [["rgba(0,0,0,0.55)", 3.2], ["rgba(255,255,255,0.95)", 1.5]]) {
      c.strokeStyle = colour
      c.lineWidth = width * ratio
      c.beginPath()
      for (const shift of [-size, 0, size]) {
        c.moveTo(shift - size, 2 * size)
        c.lineTo(shift + 2 * size, -size)
      }
      c.stroke()
    }
  } else {
    for (const [colour, radius] of [["rgba(0,0,0,0.5)", 1.7], ["rgba(255,255,255,0.8)", 0.9]]) {
      c.fillStyle = colour
      c.beginPath()
      c.arc(size / 2, size / 2, radius * ratio, 0, 2 * Math.PI)
      c.fill()
    }
  }
  return context.createPattern(tile, "repeat")
}

// A sheet is a canvas of the picture's size on which paths in pixels of the image can be drawn.
class Sheet {
  constructor(field, width, height, ratio, canvas = makeCanvas(width, height)) {
    this.canvas = canvas
    this.context = this.canvas.getContext("2d")
    this.ratio = ratio
    this.scale = width / field.width
    this.stretch = height / field.height
  }

  clear() {
    this.context.setTransform(1, 0, 0, 1, 0, 0)
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height)
  }

  place(source) {
    this.context.setTransform(1, 0, 0, 1, 0, 0)
    this.context.imageSmoothingQuality = "high"
    this.context.drawImage(source, 0, 0, this.canvas.width, this.canvas.height)
  }

  inPixels() {
    this.context.setTransform(this.scale, 0, 0, this.stretch, 0, 0)
    return this.context
  }

  line(path, colour, width, dash = []) {
    const c = this.inPixels()
    const unit = this.ratio / this.scale
    c.lineJoin = "round"
    c.setLineDash([])
    c.strokeStyle = "rgba(0,0,0,0.7)"
    c.lineWidth = (width + 2.2) * unit
    c.stroke(path)
    c.setLineDash(dash.map((part) => part * unit))
    c.strokeStyle = colour
    c.lineWidth = width * unit
    c.stroke(path)
    c.setLineDash([])
  }

  tint(path, colour, strength) {
    const c = this.inPixels()
    c.globalAlpha = strength
    c.fillStyle = colour
    c.fill(path, "evenodd")
    c.globalAlpha = 1
  }

  // fills what lies in one path and not in the other
  texture(inside, outside, hatched) {
    this.clear()
    const c = this.context
    this.hatch ??= makePattern(c, this.ratio, true)
    this.dots ??= makePattern(c, this.ratio, false)
    c.save()
    this.inPixels().clip(inside, "evenodd")
    c.setTransform(1, 0, 0, 1, 0, 0)
    c.fillStyle = hatched ? this.hatch : this.dots
    c.fillRect(0, 0, this.canvas.width, this.canvas.height)
    c.restore()
    c.globalCompositeOperation = "destination-out"
    this.inPixels().fill(outside, "evenodd")
    c.globalCompositeOperation = "source-over"
  }
}

function drawMethod(sheet, field, mark) {
  sheet.line(field.path(mark.code), mark.colour, WIDE, mark.dash)
}

function drawTruth(sheet, field) {
  if (field.lesion) sheet.line(field.truthPath, "#ffffff", 1.4)
}

// One world of the wipe: the picture with one method's set.
function drawWorld(sheet, scratch, image, field, mark, hidden) {
  sheet.clear()
  sheet.place(image)
  if (!hidden.has(mark.name)) sheet.tint(field.path(mark.code), mark.colour, 0.2)
  if (field.lesion && !hidden.has("missed")) {
    scratch.texture(field.truthPath, field.path(mark.code), true)
    sheet.place(scratch.canvas)
  }
  if (!hidden.has(mark.name)) drawMethod(sheet, field, mark)
}

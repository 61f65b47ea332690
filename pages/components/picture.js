// The component: joins the pixels and the thresholds, remembers what the person did, and draws at most once a frame.
const owns = new WeakMap() // parts and sheets of each mounted picture
const memories = new Map() // key and mode -> what the person did; outlives a visit to another page
const entries = new Map() // digest -> { field, image, ready }

function entryOf(digest) {
  let entry = entries.get(digest)
  if (entry) return entry
  const pixels = globalThis.plumblinePixels?.get(digest)
  if (!pixels) return null
  const image = new Image()
  image.src = pixels.image
  entry = { field: new Field(pixels), image, done: false }
  entry.ready = image.decode().then(() => { entry.done = true })
  entries.set(digest, entry)
  if (entries.size > 8) entries.delete(entries.keys().next().value)
  return entry
}

function start(parentElement) {
  const find = (query) => parentElement.querySelector(query)
  const own = {
    parts: {
      root: find(".root"), chips: find(".chips"), stage: find(".stage"), frame: find(".frame"), image: find(".image"), side: find(".side"),
      curve: find(".curve"), range: find("input"), snaps: find(".snaps"), sentence: find(".sentence"), handle: find(".handle"),
      captions: [find(".caption.left"), find(".caption.right")],
    },
    pending: 0,
  }
  own.curve = new Curve(own.parts.curve)
  own.redraw = () => { own.pending ||= requestAnimationFrame(() => { own.pending = 0; draw(own) }) }
  own.draw = () => draw(own)
  own.prepare = () => prepare(own)
  own.arrived = (event) => { if (event.detail === own.data.digest) show(own) }
  window.addEventListener("plumbline-pixels", own.arrived)
  own.observer = new ResizeObserver(() => { if (own.field) { layOut(own); draw(own) } })
  own.observer.observe(own.parts.stage)
  own.observer.observe(own.parts.side)
  attachHandle(own)
  attachRange(own)
  return own
}

function stop(own) {
  own.stopEasing?.()
  own.observer.disconnect()
  cancelAnimationFrame(own.pending)
  window.removeEventListener("plumbline-pixels", own.arrived)
}

// A new image starts afresh, but for what was switched off in the legend.
function memoryOf(data) {
  const name = `${data.key} ${data.mode}`
  const old = memories.get(name)
  if (old?.digest === data.digest) return old
  const names = data.marks.map((mark) => mark.name)
  const usual = names.filter((each) => each === "CRC" || each === "COAT")
  const first = data.mode === "wipe" ? data.wipe : usual.length ? usual : names.slice(0, 2)
  const memory = { digest: data.digest, handle: 0.5, follow: first[0], logit: 0, code: 0, hidden: old?.hidden ?? new Set(names.filter((each) => !first.includes(each))) }
  memories.set(name, memory)
  return memory
}

function show(own) {
  const { data, parts } = own
  parts.root.className = `root ${data.mode}`
  parts.root.style.setProperty("--height", `max(${data.height}px, 56vh)`) // a projector with more lines gets a larger picture
  const entry = entryOf(data.digest)
  if (!entry) return // the pixels are still on their way and will call again
  if (!entry.done) {
    const { digest } = data
    entry.ready.then(() => own.data.digest === digest && show(own))
    return
  }
  own.field = entry.field
  own.picture = entry.image
  own.memory = memoryOf(data)
  const followed = data.marks.find((mark) => mark.name === own.memory.follow)
  if (followed) Object.assign(own.memory, { logit: followed.logit, code: followed.code })
  const style = getComputedStyle(parts.root)
  own.theme = {
    font: style.fontFamily, text: style.color, border: style.getPropertyValue("--st-border-color").trim() || "#ccc",
    background: style.getPropertyValue("--st-background-color").trim() || "#fff",
  }
  parts.image.setAttribute("aria-label", data.alt || "The image with its outlines")
  parts.range.min = own.field.low
  parts.range.max = own.field.high
  showChips(own)
  showSnaps(own)
  layOut(own)
  draw(own)
  if (data.mode === "wipe") easeOnce(own)
}

// Sizes follow the space that the page gives; the picture keeps its aspect inside it.
function layOut(own) {
  const { stage, frame, image, side } = own.parts
  const { field } = own
  const ratio = window.devicePixelRatio || 1
  const scale = Math.min(stage.clientWidth / field.width, stage.clientHeight / field.height)
  own.width = Math.max(1, Math.floor(field.width * scale))
  own.height = Math.max(1, Math.floor(field.height * scale))
  frame.style.width = `${own.width}px`
  frame.style.height = `${own.height}px`
  const [width, height] = [Math.round(own.width * ratio), Math.round(own.height * ratio)]
  if (image.width !== width) image.width = width
  if (image.height !== height) image.height = height
  const sheet = (canvas) => new Sheet(field, width, height, ratio, canvas)
  own.screen = sheet(image)
  own.base = sheet()
  own.lines = sheet()
  own.scratch = sheet()
  own.worlds = own.data.mode === "wipe" ? [sheet(), sheet()] : []
  if (side.clientWidth > 80) own.curve.size(side.clientWidth, side.clientHeight, ratio)
  prepare(own)
}

// What stays while the person drags.
function prepare(own) {
  const { data, field, memory, lines, base } = own
  const { hidden } = memory
  lines.clear()
  if (data.mode === "wipe") {
    data.wipe.forEach((name, side) => {
      const mark = data.marks.find((each) => each.name === name)
      drawWorld(own.worlds[side], own.scratch, own.picture, field, mark, hidden)
    })
    if (!hidden.has("truth")) drawTruth(lines, field)
    placeCaptions(own)
    return
  }
  base.place(own.picture)
  for (const mark of data.marks) if (!hidden.has(mark.name)) base.tint(field.path(mark.code), mark.colour, 0.16)
  if (!hidden.has("truth")) drawTruth(lines, field)
  for (const mark of data.marks) if (!hidden.has(mark.name)) drawMethod(lines, field, mark)
  if (own.curve.width) {
    const marks = data.oracle && field.lesion ? [...data.marks, data.oracle] : data.marks
    own.curve.prepare(field, marks, 1 - data.alpha, own.theme)
    const at = marks.map((mark) => `${mark.name} at ${sayThreshold(mark.logit, mark.code)}`).join(", ")
    const what = field.lesion ? "Share of the lesion inside and share of the image marked" : "Share of the image marked"
    own.parts.curve.setAttribute("aria-label", `${what}, against the threshold. ${at}.`)
  }
}

function draw(own) {
  const { data, field, memory, screen, scratch } = own
  if (!field) return
  if (data.mode === "wipe") {
    const edge = Math.round(memory.handle * screen.canvas.width)
    const { width, height } = screen.canvas
    screen.clear()
    if (edge > 0) screen.context.drawImage(own.worlds[0].canvas, 0, 0, edge, height, 0, 0, edge, height)
    if (edge < width) screen.context.drawImage(own.worlds[1].canvas, edge, 0, width - edge, height, edge, 0, width - edge, height)
    screen.place(own.lines.canvas)
    showHandle(own)
    return
  }
  const { hidden, code, logit } = memory
  const path = field.path(code)
  screen.clear()
  screen.place(own.base.canvas)
  if (field.lesion && !hidden.has("missed")) {
    scratch.texture(field.truthPath, path, true)
    screen.place(scratch.canvas)
  }
  if (field.truth && !hidden.has("false")) {
    scratch.texture(path, field.truthPath, false)
    screen.place(scratch.canvas)
  }
  screen.place(own.lines.canvas)
  const same = data.marks.some((mark) => mark.code === code && !hidden.has(mark.name))
  if (!same && !hidden.has("own")) screen.line(path, OWN_COLOUR, 1.8)
  if (own.curve.width) own.curve.draw(field, logit, code, own.theme)
  showWords(own)
}

function showWords(own) {
  const { field, memory, parts } = own
  const worth = sayWorth(field, memory.code)
  const threshold = sayThreshold(memory.logit, memory.code)
  const sentence = `At threshold ${threshold}: ${worth}.`
  if (parts.sentence.textContent !== sentence) parts.sentence.textContent = sentence
  parts.range.value = memory.logit
  parts.range.setAttribute("aria-valuetext", `${threshold}: ${worth}`)
}

function moveTo(own, logit) {
  Object.assign(own.memory, { follow: null, logit, code: codeOf(logit) })
  own.redraw()
}

function attachRange(own) {
  const { range, side } = own.parts
  range.oninput = () => own.field && moveTo(own, range.valueAsNumber)
  range.onkeydown = (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key]
    if (!way || !own.field) return
    event.preventDefault()
    const goal = own.memory.logit + way * (event.shiftKey ? 0.01 : 0.05)
    moveTo(own, Math.min(own.field.high, Math.max(own.field.low, goal)))
  }
  const fromPointer = (event) => {
    moveTo(own, own.curve.logitAt(own.field, event.clientX - side.getBoundingClientRect().left))
  }
  side.onpointerdown = (event) => {
    if (!own.field || event.button > 0) return
    side.setPointerCapture(event.pointerId)
    own.reading = true
    fromPointer(event)
  }
  side.onpointermove = (event) => own.reading && fromPointer(event)
  side.onpointerup = side.onpointercancel = () => { own.reading = false }
}

// Buttons that bring the person's threshold back to a method's.
function showSnaps(own) {
  const marks = own.data.marks.filter((mark) => mark.name === "CRC" || mark.name === "COAT")
  const box = own.parts.snaps
  if (box.dataset.names !== marks.map((mark) => mark.name).join()) {
    box.dataset.names = marks.map((mark) => mark.name).join()
    box.replaceChildren(...marks.map((mark, index) => {
      const button = document.createElement("button")
      button.type = "button"
      button.textContent = index === 0 ? `Back to ${mark.name}` : `To ${mark.name}`
      button.onclick = () => {
        own.memory.follow = mark.name
        const { logit, code } = own.data.marks.find((each) => each.name === mark.name)
        Object.assign(own.memory, { logit, code })
        own.redraw()
      }
      return button
    }))
  }
}

export default function ({ parentElement, data }) {
  let own = owns.get(parentElement)
  if (!own) owns.set(parentElement, (own = start(parentElement)))
  own.data = data
  show(own)
  return () => {
    stop(own)
    owns.delete(parentElement)
  }
}

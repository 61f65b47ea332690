// The handle that wipes between two methods: a slider for keyboards and pointers, and the captions of the two sides.
const easedOnce = new Set() // keys of pictures whose handle has shown once that it moves

function attachHandle(own) {
  const { frame, handle } = own.parts
  const set = (part) => {
    own.stopEasing?.()
    own.memory.handle = Math.min(1, Math.max(0, part))
    own.redraw()
  }
  const fromPointer = (event) => {
    const box = frame.getBoundingClientRect()
    set((event.clientX - box.left) / box.width)
  }
  frame.onpointerdown = (event) => {
    if (own.data.mode !== "wipe" || event.button > 0) return
    frame.setPointerCapture(event.pointerId)
    own.dragging = true
    handle.focus({ preventScroll: true })
    fromPointer(event)
    event.preventDefault()
  }
  frame.onpointermove = (event) => own.dragging && fromPointer(event)
  frame.onpointerup = frame.onpointercancel = () => { own.dragging = false }
  handle.onkeydown = (event) => {
    own.stopEasing?.()
    const at = own.memory.handle
    const step = event.shiftKey ? 0.1 : 0.02
    const goals = {
      ArrowLeft: at - step, ArrowDown: at - step, ArrowRight: at + step, ArrowUp: at + step,
      PageDown: at - 0.1, PageUp: at + 0.1, Home: 0, End: 1,
    }
    if (!(event.key in goals)) return
    event.preventDefault()
    set(Math.round(goals[event.key] * 1000) / 1000)
  }
}

// Captions stand where they hide less of what matters; once for each picture, not while the handle moves.
function placeCaptions(own) {
  const codes = own.data.wipe.map((name) => own.data.marks.find((mark) => mark.name === name).code)
  own.parts.frame.classList.toggle("low", own.field.topIsBusy(Math.min(...codes)))
}

function showHandle(own) {
  const { handle, captions } = own.parts
  const part = own.memory.handle
  const [left, right] = own.data.wipe
  handle.style.left = `${part * 100}%`
  handle.setAttribute("aria-label", `Wipe between ${left} on the left and ${right} on the right`)
  handle.setAttribute("aria-valuenow", String(Math.round(part * 100)))
  handle.setAttribute("aria-valuetext", `${Math.round(part * 100)} percent of the picture shows ${left}, the rest ${right}`)
  own.data.wipe.forEach((name, side) => {
    const mark = own.data.marks.find((each) => each.name === name)
    const caption = captions[side]
    caption.style.setProperty("--line", mark.colour)
    caption.querySelector("strong").textContent = name
    const found = own.field.lesion ? `finds ${sayShare(own.field.coverage(mark.code))}, ` : ""
    caption.querySelector("span").textContent = `${found}marks ${sayShare(own.field.area(mark.code))}`
    const edge = part * own.width
    const cut = side === 0 ? caption.offsetLeft + caption.offsetWidth - edge : edge - caption.offsetLeft
    const inset = Math.min(Math.max(cut, 0), caption.offsetWidth)
    caption.style.clipPath = side === 0 ? `inset(-2px ${inset}px -2px -2px)` : `inset(-2px -2px -2px ${inset}px)`
  })
}

// Once, and only where motion is welcome: the handle sways a little, so that people see that it can be moved.
function easeOnce(own) {
  if (easedOnce.has(own.data.key)) return
  easedOnce.add(own.data.key)
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || own.memory.handle !== 0.5) return
  const begin = performance.now() + 350
  let frame = 0
  const step = (now) => {
    const part = Math.min(1, Math.max(0, (now - begin) / 1300))
    own.memory.handle = 0.5 + 0.09 * Math.sin(2 * Math.PI * part) * (1 - part * part)
    if (part < 1) frame = requestAnimationFrame(step)
    else own.stopEasing()
    own.draw()
  }
  own.stopEasing = () => {
    cancelAnimationFrame(frame)
    own.stopEasing = null
    own.memory.handle = 0.5
  }
  frame = requestAnimationFrame(step)
}

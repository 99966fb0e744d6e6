/** A text and its expected transcription: by default its own words. */
export type SpokenText = { text: string; said?: string };

/**
 * Ordinary sentences, and texts that have to be expanded into words: numbers, money, dates, signs, abbreviations.
 * Written for this test.
 */
export const TEXTS: SpokenText[] = [
  { text: 'The ferry leaves the harbor every morning at seven and returns before dark.' },
  { text: 'She opened the window because the room was too warm for the meeting.' },
  { text: 'Most of the people in the village work on farms or in the small factory.' },
  { text: 'The company said that it would close two offices and move the staff to the city.' },
  { text: 'Please call the office before noon if you want to change your order.' },
  { text: 'The children waited at the corner for the bus, but the bus was late again.' },
  { text: 'Heavy rain is expected in the north, while the south will stay dry and sunny.' },
  { text: 'He has written three books about the history of the railroad.' },
  { text: 'The new bridge will make the road to the airport much shorter.' },
  { text: 'If the price falls, they will buy more land near the river.' },
  { text: 'Doctors advise older people to walk for half an hour every day.' },
  { text: 'The train to the capital was full, so we decided to travel the next day.' },
  { text: 'The government has promised to lower taxes for small companies.' },
  { text: 'You can pay with a card or in cash when you pick up the package.' },
  { text: 'Nobody knows who painted the picture that hangs in the old church.' },
  { text: 'The bank opened a new account and sent the papers by mail.' },
  { text: 'After the storm, workers spent the whole week repairing the power lines.' },
  { text: 'The teacher asked the students to write a short letter to a friend.' },
  { text: 'Our plane landed on time, and our bags were already waiting for us.' },
  { text: 'The market was quiet in the morning, but trading picked up in the afternoon.' },
  {
    text: 'Sales rose by 12% to $3.4 million last year.',
    said: 'sales rose by twelve percent to three point four million dollars last year',
  },
  { text: 'The ticket costs $25.50 for adults.', said: 'the ticket costs twenty five dollars and fifty cents for adults' },
  { text: 'The meeting is on 2026-03-15 in room 4.', said: 'the meeting is on march fifteenth twenty twenty six in room four' },
  { text: 'Dr. Brown & Mr. Smith live on Park St.', said: 'doctor brown and mister smith live on park street' },
  { text: 'It was -5°C in the morning.', said: 'it was minus five degrees celsius in the morning' },
  { text: 'Write to info@example.com today.', said: 'write to info at example dot com today' },
  { text: 'About 250000 people live there, 3/4 of them in the city.', said: 'about two hundred fifty thousand people live there three fourths of them in the city' },
  { text: 'The road is 15 km long → turn left.', said: 'the road is fifteen kilometers long to turn left' },
  { text: 'They paid 5 ₽ for the card and €7 for the book.', said: 'they paid five rubles for the card and seven euros for the book' },
  { text: 'OK, the water is ½ full.', said: 'okay the water is one half full' },
]; // prettier-ignore
